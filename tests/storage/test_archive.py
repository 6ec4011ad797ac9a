"""An archive comes back as it was written, or is refused; a write that fails changes nothing."""

import errno
import hashlib
import io
import json
import math
import os
import pickle
import random
import stat
import sys
import warnings
import zipfile

import numpy as np
import pytest

from stoic.errors import DamagedFile, InvalidParameter, StoicError
from stoic.storage import archive, atomic as writing
from stoic.storage.archive import read_archive, write_archive

N_FLIPS, N_CUTS = 2_000, 500
ARRAYS = {"w": np.linspace(-1.0, 1.0, 7), "counts": np.arange(6, dtype=np.int32).reshape(2, 3)}
META = {"solver": "rosc", "step": 3, "alphas": [0.1, 0.2], "nested": {"yes": True, "no": None}}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


@pytest.fixture
def content(path):
    write_archive(path, ARRAYS, META)
    return path.read_bytes()


def assert_same(found, arrays, meta):
    assert found[0].keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[0][name].dtype == np.asarray(array).dtype
        np.testing.assert_array_equal(found[0][name], array)
    assert found[1] == meta


def sealed(content):
    """Return a zip file without a comment as an archive: its checksum is right, whatever is in it."""
    seal = archive._MARK + hashlib.sha256(content).hexdigest().encode()
    return content[:-2] + len(seal).to_bytes(2, "little") + seal


def zipped(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, member in members:
            made.writestr(name, member)
    return file.getvalue()


# Round trips


def test_arrays_and_settings_come_back(path):
    write_archive(path, ARRAYS, META)
    assert_same(read_archive(path), ARRAYS, META)


@pytest.mark.parametrize(
    "array",
    [
        np.float64(3.5),
        np.empty((0, 3)),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12)[::-3],
        np.array([math.nan, math.inf, -0.0]),
        np.array([1.5], dtype=">f4"),
        np.array(["äöü", ""]),
        np.array([b"bytes"]),
        np.array(["2024-01-01", "NaT"], dtype="datetime64[D]"),
        np.array([True, False]),
        np.array([1 + 2j]),
        np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
        [1, 2, 3],
    ],
    ids=lambda array: str(np.asarray(array).dtype) + str(np.shape(array)),
)
def test_arrays_of_any_type_and_shape_come_back(array, path):
    write_archive(path, {"x": array}, {})
    assert_same(read_archive(path), {"x": array}, {})


def test_arrays_that_come_back_can_be_written_to(path):
    write_archive(path, ARRAYS, META)
    read_archive(path)[0]["w"][0] = 5.0


def test_arrays_handed_in_stay_as_they_are(path):
    array = np.arange(3.0)
    array.flags.writeable = False
    write_archive(path, {"x": array}, {})
    np.testing.assert_array_equal(array, np.arange(3.0))


def test_no_arrays_and_no_settings_are_an_archive(path):
    write_archive(path, {}, {})
    assert read_archive(path) == ({}, {})


def test_settings_keep_infinities_and_text_of_any_language(path):
    meta = {"radius": math.inf, "ключ": "値", "empty": {}}
    write_archive(path, {}, meta)
    assert read_archive(path)[1] == meta


def test_numpy_opens_the_file(path):
    write_archive(path, ARRAYS, META)
    with np.load(path, allow_pickle=False) as loaded:
        np.testing.assert_array_equal(loaded["w"], ARRAYS["w"])
        np.testing.assert_array_equal(loaded["counts"], ARRAYS["counts"])
        assert json.loads(loaded["meta.json"]) == META


def test_other_zip_tools_find_nothing_wrong(content):
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        assert opened.testzip() is None
        assert len(opened.comment) == archive._SEAL_SIZE


def test_the_same_content_gives_the_same_bytes(content, path):
    write_archive(path, ARRAYS, META)
    assert path.read_bytes() == content


def test_a_name_may_have_any_suffix_and_paths_may_be_text(tmp_path):
    write_archive(str(tmp_path / "state"), ARRAYS, META)
    assert [*tmp_path.iterdir()] == [tmp_path / "state"]
    assert_same(read_archive(str(tmp_path / "state")), ARRAYS, META)


def test_a_link_stays_a_link(path, tmp_path):
    link = tmp_path / "latest"
    link.symlink_to(path)
    write_archive(link, ARRAYS, META)
    assert link.is_symlink()
    assert_same(read_archive(path), ARRAYS, META)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are those of POSIX")
def test_the_file_may_be_read_by_whom_the_user_lets_read_files(path, tmp_path):
    (tmp_path / "other").write_text("made by open()")
    write_archive(path, ARRAYS, META)
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


# Damage


def refusal(path, content):
    """Return the message with which a file is refused; another exception, or none, fails the test."""
    path.write_bytes(content)
    with pytest.raises(DamagedFile) as refused:
        read_archive(path)
    return str(refused.value)


@pytest.mark.slow
def test_no_flipped_bit_is_accepted(content, path):
    rng = random.Random(0)
    places = {*range(80), *range(8 * len(content) - 1_200, 8 * len(content))}  # the first header, and the end
    places |= set(rng.sample(range(8 * len(content)), N_FLIPS))
    for place in places:
        altered = bytearray(content)
        altered[place // 8] ^= 1 << place % 8
        assert str(path) in refusal(path, bytes(altered))


def test_no_cut_off_file_is_accepted(content, path):
    lengths = {*range(60), *range(len(content) - 120, len(content))}
    lengths |= set(random.Random(1).sample(range(len(content)), N_CUTS))
    for length in lengths:
        assert "cut off" in refusal(path, content[:length])


@pytest.mark.parametrize("size", [1, 2, 1_000])
def test_no_file_with_something_added_is_accepted(size, content, path):
    rng = random.Random(size)
    for _ in range(50):
        at = rng.randrange(len(content) + 1)
        refusal(path, content[:at] + rng.randbytes(size) + content[at:])


@pytest.mark.parametrize("junk", [b"", b"PK", b"not a zip file", bytes(5_000), random.Random(2).randbytes(5_000)])
def test_what_is_no_zip_file_is_refused(junk, path):
    assert "was not written by stoic" in refusal(path, junk)


def test_a_file_that_numpy_wrote_is_refused(path):
    np.savez(path, w=np.ones(3))
    with pytest.raises(DamagedFile, match="not written by stoic"):
        read_archive(path)


def test_a_message_names_the_file_and_says_what_to_do(content, path):
    message = refusal(path, content[:200] + b"\0" + content[201:])
    assert str(path) in message
    assert "make it again, or use a copy" in message


def npy(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=True)
    return file.getvalue()


class Bomb:
    def __reduce__(self):
        return pytest.fail, ("unpickled",)


@pytest.mark.parametrize(
    "members",
    {
        "no settings": [("w.npy", npy(np.ones(2)))],
        "settings that are a list": [("meta.json", b"[1]")],
        "settings that are no JSON": [("meta.json", b"{")],
        "settings that are no text": [("meta.json", b"\xff\xfe{")],
        "settings nested beyond reason": [("meta.json", b"[" * 100_000)],
        "an array of objects": [("meta.json", b"{}"), ("x.npy", npy(np.array([Bomb()], dtype=object)))],
        "a pickle": [("meta.json", b"{}"), ("x.npy", pickle.dumps(Bomb()))],
        "a cut array": [("meta.json", b"{}"), ("x.npy", npy(np.ones(9))[:-4])],
        "a header of nonsense": [("meta.json", b"{}"), ("x.npy", b"\x93NUMPY\x01\x00\x10\x00" + b"(" * 16)],
        "an empty array file": [("meta.json", b"{}"), ("x.npy", b"")],
    }.items(),
    ids=lambda item: item[0],
)
def test_the_right_checksum_does_not_save_what_write_archive_would_not_write(members, path):
    assert "cannot be read" in refusal(path, sealed(zipped(members[1])))


def test_the_right_checksum_does_not_save_what_is_no_zip_file(path):
    assert "cannot be read" in refusal(path, sealed(b"anything" * 9 + b"\0\0"))


def test_a_missing_file_is_an_oserror_that_names_it(path):
    with pytest.raises(FileNotFoundError, match=r"model\.npz"):
        read_archive(path)


def test_damage_is_a_stoic_error_and_a_value_error():
    assert issubclass(DamagedFile, StoicError)
    assert issubclass(DamagedFile, ValueError)


# What cannot be stored


@pytest.mark.parametrize(
    ("arrays", "meta", "message"),
    [
        ({"x": np.array([{}], dtype=object)}, {}, "'x' has dtype object"),
        ({"x": np.zeros(1, dtype=[("a", object)])}, {}, "objects cannot be stored"),
        ({"x": [[1], [1, 2]]}, {}, "differ in length"),
        ({"a b": np.ones(1)}, {}, "'a b' cannot name an array"),
        ({"": np.ones(1)}, {}, "'' cannot name"),
        ({1: np.ones(1)}, {}, "1 cannot name"),
        ({}, {"x": np.ones(1)}, "meta cannot be stored"),
        ({}, {"x": {1, 2}}, "meta cannot be stored"),
        ({}, {(1, 2): 3}, "meta cannot be stored"),
    ],
)
def test_what_cannot_be_stored_is_refused_before_a_file_is_made(arrays, meta, message, content, path, tmp_path):
    with pytest.raises(InvalidParameter, match=message):
        write_archive(path, arrays, meta)
    assert path.read_bytes() == content
    assert [*tmp_path.iterdir()] == [path]


def test_settings_that_hold_themselves_are_refused(path):
    meta = {}
    meta["self"] = meta
    with pytest.raises(InvalidParameter, match="meta cannot be stored"):
        write_archive(path, {}, meta)


# Writes that fail


PLACES = ["os.fsync", "os.replace", "zipfile.ZipFile.open", "numpy.lib.format.write_array"]


def no_space(*arguments, **options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupt(*arguments, **options):
    raise KeyboardInterrupt


@pytest.mark.parametrize("failure", [no_space, interrupt])
@pytest.mark.parametrize("place", PLACES)
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    place, failure, content, path, tmp_path, monkeypatch
):
    monkeypatch.setattr(place, failure)
    with pytest.raises((OSError, KeyboardInterrupt)):
        write_archive(path, {"w": np.zeros(1_000)}, {"new": True})
    monkeypatch.undo()
    assert path.read_bytes() == content
    assert [*path.parent.iterdir()] == [path]
    assert_same(read_archive(path), ARRAYS, META)


@pytest.mark.skipif(sys.platform == "win32", reason="a limit on file sizes stands in for a full disk")
@pytest.mark.parametrize("room", [0, 100, 4_096, 8_192])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(room, content, path, tmp_path):
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_archive(path, {"w": np.random.default_rng(0).random(20_000)}, META)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == content
    assert [*tmp_path.iterdir()] == [path]


def test_a_folder_that_cannot_be_synced_is_no_error(path, monkeypatch):
    monkeypatch.setattr(os, "open", no_space)
    writing._sync_folder(path.parent)


def test_a_folder_that_is_not_there_is_an_error_that_names_the_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere.model\.npz") as refused:
        write_archive(tmp_path / "nowhere" / "model.npz", ARRAYS, META)
    assert ".tmp" not in str(refused.value)


def test_a_folder_in_place_of_the_file_is_an_error_that_leaves_nothing(tmp_path):
    (tmp_path / "model.npz").mkdir()
    with pytest.raises(OSError, match=r"model\.npz") as refused:
        write_archive(tmp_path / "model.npz", ARRAYS, META)
    assert ".tmp" not in str(refused.value)
    assert [*tmp_path.iterdir()] == [tmp_path / "model.npz"]


def test_the_data_are_on_the_disk_before_the_name_is(path, monkeypatch):
    calls = []
    for name in ("fsync", "replace"):
        original = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, n=name, o=original: (calls.append(n), o(*a))[1])
    write_archive(path, ARRAYS, META)
    assert calls[:2] == ["fsync", "replace"]
