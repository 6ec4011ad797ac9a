"""How columns were made, from a model file that somebody altered: refused in one line, or shown as text."""

import copy

import numpy as np
import pytest
from click.testing import CliRunner

import stoic
from stoic.cli.main import main
from stoic.fitting.files import fit_file, load_fitted, save_fitted
from stoic.fitting.schemas import Schema
from stoic.storage.archive import read_archive, write_archive


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A table, and what is in the file of a model for it."""
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    rows = [
        f"{y:.3f},{x:.3f},{t},{g}" for y, x, t, g in zip(*rng.random((2, 40)), "uv" * 20, "ab" * 20, strict=True)
    ]
    (folder / "rows.csv").write_text("\n".join(["y,x,town,g", *rows]) + "\n", encoding="utf-8")
    save_fitted(fit_file(folder / "rows.csv", Schema("y", "g"), {}), folder / "m.stoic")
    return folder / "rows.csv", read_archive(folder / "m.stoic")


CHANGES = {
    "no columns": lambda columns: columns.clear(),
    "a role that is a number": lambda columns: columns.update(target=3),
    "leave out nothing": lambda columns: columns.update(leave_out=None),
    "no list": lambda columns: columns.update(encoding=7),
    "codes that are text": lambda columns: columns.update(encoding=["x"]),
    "a code without a name": lambda columns: columns["encoding"][0].pop("name"),
    "a name that is a number": lambda columns: columns["encoding"][0].update(name=1),
    "categories that are numbers": lambda columns: columns["encoding"][1].update(categories=[1, 2]),
    "categories twice": lambda columns: columns["encoding"][1].update(categories=["u", "u"]),
    "no category": lambda columns: columns["encoding"][1].update(categories=[]),
    "a number filled with text": lambda columns: columns["encoding"][0].update(fill="u"),
    "text filled with a number": lambda columns: columns["encoding"][1].update(fill=1.0),
    "more columns than weights": lambda columns: columns["encoding"][1].update(categories=["u", "v", "w"]),
    "a surplus key": lambda columns: columns.update(more=1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_wrong_columns_are_one_line_that_names_the_file(name, made, tmp_path):
    data, (arrays, meta) = made
    meta = copy.deepcopy(meta)
    CHANGES[name](meta["columns"])
    write_archive(tmp_path / "m.stoic", arrays, meta)
    with pytest.raises(stoic.DamagedFile, match=r"m\.stoic has the right checksum but"):
        load_fitted(tmp_path / "m.stoic")
    ended = CliRunner().invoke(main, ["predict", str(tmp_path / "m.stoic"), str(data)])
    assert (ended.exit_code, ended.stderr.count("\n")) == (1, 1)


def test_names_in_the_model_of_a_stranger_do_not_steer_the_terminal(made, tmp_path):
    data, (arrays, meta) = made
    meta = copy.deepcopy(meta)
    meta["labels"]["groups"] = {"dtype": "<U9", "values": ["a\x1b[2J", "b\u202e"]}
    meta["columns"]["target"] = "y\x07"
    meta["columns"]["encoding"][0]["name"] = "x\x9b\n"
    write_archive(tmp_path / "m.stoic", arrays, meta)
    for arguments in (["inspect", str(tmp_path / "m.stoic")], ["predict", str(tmp_path / "m.stoic"), str(data)]):
        shown = CliRunner().invoke(main, arguments).output
        assert not set("\x1b\u202e\x07\x9b") & set(shown)
    assert "a\\x1b[2J" in CliRunner().invoke(main, ["inspect", str(tmp_path / "m.stoic")]).output
