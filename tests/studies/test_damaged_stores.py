"""Stores that are damaged, or somebody else's: one line that names the file and says what to do."""

import shutil
import sqlite3

import pytest
from click.testing import CliRunner

from made_results import made_results
from made_tails import made_tails
from stoic.cli.main import main
from stoic.errors import InvalidParameter
from stoic.studies.confidence.results import load_tails
from stoic.studies.paper.results import load_results
from stoic.studies.paper.store import Store
from stoic.studies.shared.database import DamagedStore, locked

KINDS = {"store.sqlite": load_results, "tails.sqlite": load_tails}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    made_results(folder, alphas=(0.1,), steps=(0.1,), temperatures=(1.0,), trials=1)
    made_tails(folder, noises=("gaussian",), places=("labels",), runs=20, rates=(1000, 4000), rate_runs=3)
    for name in KINDS:
        query(folder / name, "PRAGMA journal_mode = DELETE")
    return folder


def query(path, *statement):
    database = sqlite3.connect(path)
    with database:
        database.execute(*statement)
    database.close()


def cut(path):
    path.write_bytes(path.read_bytes()[:5000])


def garbled(path):
    content = path.read_bytes()
    path.write_bytes(content[:4096] + bytes(range(256)) * 16 + content[8192:])


def told(fact, value):
    return lambda path: query(path, "UPDATE facts SET value = ? WHERE name = ?", (value, fact))


def sql(statement):
    return lambda path: query(path, statement)


def of_another_schema(path):
    path.unlink()
    query(path, "CREATE TABLE facts (name TEXT, value TEXT, more TEXT)")
    query(path, "CREATE TABLE runs (a, b)")
    query(path, "INSERT INTO facts VALUES ('spec', '{}', '')")
    query(path, "INSERT INTO runs VALUES (1, 2)")


DAMAGES = {
    "cut off": cut,
    "a page of garbage": garbled,
    "nothing but garbage": lambda path: path.write_bytes(b"garbage" * 999),
    "another schema": of_another_schema,
    "a spec that is no JSON": told("spec", "{"),
    "a spec that is a list": told("spec", "[1]"),
    "a spec of another program": told("spec", '{"color": "red"}'),
    "a machine that is a number": told("machine", "7"),
    "shares that are words": sql("UPDATE runs SET truncated_y = 'many'"),
    "an ending that is none": sql("UPDATE runs SET ending = 'sad'"),
    "a view in the place of a table": sql("CREATE VIEW more AS SELECT * FROM runs"),
    "a trigger": sql("CREATE TRIGGER more AFTER INSERT ON runs BEGIN DELETE FROM facts; END"),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_store_is_one_line_that_names_it_and_says_what_to_do(damage, name, made, tmp_path):
    path = tmp_path / name
    shutil.copy(made / name, path)
    DAMAGES[damage](path)
    ended = CliRunner().invoke(main, ["report", str(tmp_path)])
    assert (ended.exit_code, ended.stderr.count("\n")) == (1, 1), ended.output
    assert f"{name}' is damaged, or no store that stoic wrote" in ended.stderr
    assert "put back a copy, or delete it and run stoic" in ended.stderr


@pytest.mark.parametrize("scores", ["", "{", "[]", '{"mse": "low"}', '{"other": 1.0}', '{"mse": null}'])
def test_scores_that_are_damaged_are_no_results(scores, made, tmp_path):
    path = tmp_path / "store.sqlite"
    shutil.copy(made / "store.sqlite", path)
    query(path, "UPDATE points SET scores = ?", (scores,))
    with pytest.raises(DamagedStore, match="is damaged"):
        load_results(tmp_path)


def test_a_damaged_store_is_not_written_to(made, tmp_path):
    path = tmp_path / "store.sqlite"
    shutil.copy(made / "store.sqlite", path)
    told("spec", "{")(path)
    with Store(tmp_path) as store, pytest.raises(DamagedStore):
        store.claim({}, "", free=())


def test_a_folder_in_the_place_of_a_store_is_named(tmp_path):
    (tmp_path / "store.sqlite").mkdir()
    with pytest.raises(OSError, match=r"store\.sqlite' cannot be used: unable to open"):
        Store(tmp_path)


def test_a_full_disk_is_no_damage(tmp_path):
    with Store(tmp_path) as store:
        store._db.execute("PRAGMA max_page_count = 9")
        with pytest.raises(OSError, match=r"store\.sqlite' cannot be used: database or disk is full"):
            store.set_fact("long", "x" * 10**6)
        assert store.facts() == {}


def test_a_lock_that_is_none_is_told_from_one_that_is_held(tmp_path):
    (tmp_path / "store.lock").write_bytes(b"garbage" * 999)
    with pytest.raises(DamagedStore, match=r"store\.lock' is no lock of stoic .* delete it"), locked(tmp_path):
        pass
    (tmp_path / "store.lock").unlink()
    with locked(tmp_path), pytest.raises(InvalidParameter, match="is at work"), locked(tmp_path):
        pass
    (tmp_path / "store.lock").unlink()
    (tmp_path / "store.lock").mkdir()
    with pytest.raises(OSError, match=r"store\.lock' cannot be used"), locked(tmp_path):
        pass
