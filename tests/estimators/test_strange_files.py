"""Model files that somebody altered and sealed again: refused with the reason, before they take memory."""

import copy
import io
import tracemalloc
import zipfile

import numpy as np
import pytest

import stoic
from stoic import GroupDROClassifier, GroupDRORegressor, load_model, save_model
from stoic.storage.archive import _MARK, read_archive, write_archive

RNG = np.random.default_rng(0)
X, GROUPS = RNG.standard_normal((60, 2)), np.array(["a", "b", "c"] * 20)
Y = X @ [1.0, 2.0] + RNG.standard_normal(60)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Arrays and JSON of a regression and of a classification of three classes."""
    path, found = tmp_path_factory.mktemp("models") / "model.stoic", {}
    for name, model, y in (
        ("regressor", GroupDRORegressor(protect="regret"), Y),
        ("classifier", GroupDROClassifier(), np.digitize(Y, [-1, 1])),
    ):
        save_model(model.fit(X, y, groups=GROUPS), path)
        found[name] = read_archive(path)
    return found


def refusal(saved, kind, change, path):
    arrays, meta = copy.deepcopy(saved[kind])
    change(arrays, meta)
    write_archive(path, arrays, meta)
    with pytest.raises(stoic.DamagedFile, match="right checksum") as refused:
        load_model(path)
    assert str(path) in str(refused.value)
    assert len(str(refused.value)) < 500
    return str(refused.value)


def put(name, value):
    def change(arrays, meta):
        arrays[name] = value(arrays.get(name))

    return change


def tell(place, value):
    *path, name = place.split(".")

    def change(arrays, meta):
        for part in path:
            meta = meta[part]
        if value is KeyError:
            del meta[name]
        else:
            meta[name] = value

    return change


ARRAYS = {
    "NaN": (put("coef", lambda a: a * np.nan), "coef has entries that are not: finite"),
    "infinity": (put("intercept", lambda a: a + np.inf), "intercept has entries"),
    "complex": (put("coef", lambda a: a + 1j), "coef is of dtype complex128"),
    "text": (put("coef", lambda a: a.astype(str)), "coef is of dtype <U"),
    "whole numbers": (put("counts", lambda a: a.astype(int)), "counts is of dtype int64"),
    "shape": (put("coef", lambda a: a[:1]), r"coef has shape (1,), not (2,)"),
    "one more axis": (put("coef", lambda a: a[None]), "coef has shape"),
    "empty": (put("intercept", lambda a: a[:0]), "intercept has shape (0,)"),
    "scale of zero": (put("scale", lambda a: a * 0.0), "scale has entries that are not: positive"),
    "groups": (put("losses", lambda a: np.ones(5)), "losses has shape (5,), not (3,)"),
    "negative count": (put("counts", lambda a: -a), "counts has entries"),
    "missing": (lambda arrays, meta: arrays.pop("losses"), "the array losses is missing"),
    "half of two": (lambda arrays, meta: arrays.pop("baselines"), "one is missing"),
    "surplus": (put("more", lambda a: np.ones(1)), "'more'] is no array of a model"),
}
TOLD = {
    "kind": ("kind", "Pipeline", "Pipeline"),
    "kind of another type": ("kind", ["x"], "kind is ['x'], not one of GroupDRORegressor"),
    "settings": ("settings", [], "settings is []"),
    "unknown setting": ("settings.color", "red", "color"),
    "wild setting": ("settings.alpha", "much", "alpha='much'"),
    "temperature": ("temperature", -1.0, "temperature is -1.0"),
    "temperature of NaN": ("temperature", float("nan"), "temperature is nan"),
    "curvature": ("curvature", "flat", "curvature is 'flat'"),
    "no facts": ("facts", None, "facts is None"),
    "steps": ("facts.n_iter_", -3, "facts.n_iter_ is -3"),
    "columns": ("facts.n_features_in_", 10**9, "coef has shape (2,), not (1000000000,)"),
    "columns by a boolean": ("facts.n_features_in_", True, "n_features_in_ is True"),
    "history": ("facts.history_", [{"objective": "low"}], "history_ is"),
    "names": ("names", ["x"], "names of columns"),
    "unit": ("target.unit", 0, "target.unit is 0"),
    "power": ("target.power", 7, "target.power is 7"),
    "loss": ("loss", {"kind": "L1", "alpha": 1.0}, "L1"),
    "loss of classes": ("loss", {"kind": "Logistic"}, "Logistic is no loss of a GroupDRORegressor"),
    "loss without its setting": ("loss", {"kind": "Huber", "width": 1.0}, "width"),
    "penalty": ("penalty", {"kind": "L2", "alpha": -1.0}, "alpha"),
    "no penalty": ("penalty", KeyError, "penalty is missing"),
    "no groups": ("labels.groups", KeyError, "no labels of groups"),
    "groups twice": ("labels.groups.values", ["a", "a", "b"], "not there once each"),
    "groups of lists": ("labels.groups.values", [["a"], ["b"], ["c"]], "a label of groups is [['a']]"),
    "groups that are numbers": ("labels.groups.values", [1, 2, 3], "a label of groups is [1]"),
    "labels of objects": ("labels.groups.dtype", "V8", "dtype |V8"),
    "no dtype": ("labels.groups.dtype", "spam", "spam"),
    "labels of a gigabyte": ("labels.groups.dtype", "<U200000000", "too much memory"),
    "how columns were made": ("columns", [1], "columns is [1]"),
    "a very long wrong value": ("kind", "x" * 10**6, "xxx"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_wrong_arrays_are_refused_with_the_reason(name, saved, tmp_path):
    change, said = ARRAYS[name]
    assert said in refusal(saved, "regressor", change, tmp_path / "model.stoic")


@pytest.mark.parametrize("name", TOLD)
def test_wrong_values_are_refused_with_the_reason(name, saved, tmp_path):
    place, value, said = TOLD[name]
    message = refusal(saved, "regressor", tell(place, value), tmp_path / "model.stoic")
    assert said in message


def test_classes_are_as_many_as_the_coefficients_tell(saved, tmp_path):
    path = tmp_path / "model.stoic"
    said = refusal(saved, "classifier", tell("labels.classes.values", [0, 1]), path)
    assert "coef has shape (3, 2), not (1, 2)" in said
    assert "it has 1 class" in refusal(saved, "classifier", tell("labels.classes.values", [0]), path)
    assert "is no loss of" in refusal(saved, "classifier", tell("loss", {"kind": "Squared"}), path)
    refusal(saved, "classifier", tell("labels.classes", KeyError), path)


def test_formats_that_are_no_number_are_refused(saved, tmp_path):
    for wrong in (True, 0, -1, 1.5, "1", None, "x" * 10**6):
        arrays, meta = saved["regressor"]
        write_archive(tmp_path / "m", arrays, meta | {"format": wrong})
        with pytest.raises(stoic.DamagedFile, match="install a newer stoic") as refused:
            load_model(tmp_path / "m")
        assert len(str(refused.value)) < 500


def test_a_model_that_could_not_be_read_is_not_written(tmp_path):
    model = GroupDRORegressor().fit(X, Y, groups=GROUPS)
    model.coef_ = model.coef_ * np.nan
    with pytest.raises(stoic.InvalidParameter, match="coef has entries that are not: finite"):
        save_model(model, tmp_path / "model.stoic")
    assert list(tmp_path.iterdir()) == []


# Archives


def sealed(content):
    import hashlib

    seal = _MARK + hashlib.sha256(content).hexdigest().encode()
    return content[:-2] + len(seal).to_bytes(2, "little") + seal


def header(shape, dtype="<f8"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue()


def zipped(entries, how=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as made:
        for name, content in entries:
            made.writestr(name, content)
    return file.getvalue()


def overlapping():
    """Return an archive whose directory lists one array a hundred times."""
    import struct

    content = zipped([("meta.json", b"{}"), ("x0.npy", header((10**5,)) + bytes(8 * 10**5))])
    end = content.rindex(b"PK\x05\x06")
    (start,) = struct.unpack_from("<L", content, end + 16)
    entry = content[content.index(b"PK\x01\x02", start + 4) : end]
    names = [entry.replace(b"x0.npy", f"y{i % 10}.npy".encode()) for i in range(10)]
    directory = content[start:end] + b"".join(names)
    count = struct.pack("<HH", 12, 12)
    ending = content[end : end + 8] + count + struct.pack("<LL", len(directory), start) + b"\0\0"
    return content[:start] + directory + ending


BOMBS = {
    "deflated": (
        lambda: zipped([("meta.json", b"{}"), ("x.npy", bytes(10**8))], zipfile.ZIP_DEFLATED),
        "compressed",
    ),
    "deflated text": (lambda: zipped([("meta.json", b" " * 10**8)], zipfile.ZIP_DEFLATED), "compressed"),
    "text without end": (lambda: zipped([("meta.json", b"[" + b"[]," * 12_000_000 + b"[]]")]), "at most"),
    "huge shape": (lambda: zipped([("meta.json", b"{}"), ("x.npy", header((10**12,)))]), "holds 0 bytes"),
    "huge shape of nothing": (
        lambda: zipped([("meta.json", b"{}"), ("x.npy", header((10**12,), "<U0"))]),
        "holds",
    ),
    "negative shape": (
        lambda: zipped([("meta.json", b"{}"), ("x.npy", header((-8, -1)) + bytes(64))]),
        "is to have",
    ),
    "too few numbers": (
        lambda: zipped([("meta.json", b"{}"), ("x.npy", header((9,)) + bytes(64))]),
        "holds 64 bytes",
    ),
    "too many numbers": (
        lambda: zipped([("meta.json", b"{}"), ("x.npy", header((7,)) + bytes(64))]),
        "holds 64 bytes",
    ),
    "a name that is a path": (lambda: zipped([("meta.json", b"{}"), ("../x y", b"")]), "name of no array"),
    "one entry many times": (overlapping, "overlap"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_would_take_more_memory_than_the_file_is_refused_before_it_is_unpacked(name, tmp_path):
    make, said = BOMBS[name]
    path = tmp_path / "model.stoic"
    path.write_bytes(sealed(make()))
    tracemalloc.start()
    try:
        with pytest.raises(stoic.DamagedFile, match=said):
            read_archive(path)
        assert tracemalloc.get_traced_memory()[1] < 2e7
    finally:
        tracemalloc.stop()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_are_there_twice_are_refused(tmp_path):
    path = tmp_path / "model.stoic"
    array = header((1,)) + bytes(8)
    path.write_bytes(sealed(zipped([("meta.json", b"{}"), ("x.npy", array), ("x.npy", array)])))
    with pytest.raises(stoic.DamagedFile, match=r"x\.npy is in it twice"):
        read_archive(path)


def test_settings_that_could_not_be_read_again_are_not_written(tmp_path):
    with pytest.raises(stoic.InvalidParameter, match="at most can be stored"):
        write_archive(tmp_path / "m", {}, {"x": "y" * (1 << 25)})
