"""The store: what goes in comes out, whole runs only, one writer at a time."""

import math
import sqlite3
import subprocess
import sys

import pytest

from stoic.errors import InvalidParameter
from stoic.studies.paper.runs import Outcome, Run, Setting
from stoic.studies.paper.selection import chosen_cells, stored_grid
from stoic.studies.paper.spec import Spec
from stoic.studies.paper.store import Store
from stoic.studies.shared.database import DamagedStore, locked

SETTING = Setting("squared", 10.0, "l1", "rrosc")
SPEC = Spec(temperatures=(10.0,), alphas=(0.1, 0.2, 0.3, 0.4, 0.5), steps=(1.0, 5.0, 10.0))


def run_of(alpha=0.1, step=1.0, phase="grid", repetition=0):
    return Run(phase, SETTING, alpha, step, repetition)


def point(samples, **scores):
    return {"samples": samples, "seconds": 0.5, "stage": 1, "truncated_y": 0.25, "truncated_z": 0.0, **scores}


def finished(*errors):
    points = [point(100 * (k + 1), plain=error, robust=error) for k, error in enumerate(errors)]
    return Outcome("finished", "Done.", 100 * len(errors), 1.5, 0.25, 0.125, points)


def test_what_goes_in_comes_out(tmp_path):
    outcome = finished(2.0, math.inf, 1e-300)
    with Store(tmp_path) as store:
        store.add(run_of(), outcome)
        store.set_fact("data", {"rows": 3, "name": "</script>"})
    with Store(tmp_path) as store:
        assert store.runs("grid") == [(run_of(), outcome)]
        assert store.runs("trial") == []
        assert store.facts() == {"data": {"rows": 3, "name": "</script>"}}


def test_a_run_that_is_kept_again_takes_the_place_of_the_first(tmp_path):
    with Store(tmp_path) as store:
        store.add(run_of(), Outcome("failed", "boom"))
        assert store.known() == {run_of().key}
        assert store.known(but_failed=True) == set()
        store.add(run_of(), finished(1.0))
        assert store.runs("grid") == [(run_of(), finished(1.0))]


def test_a_run_is_kept_whole_or_not_at_all(tmp_path):
    twice = Outcome("finished", "Done.", points=[point(100, plain=1.0), point(100, plain=1.0)])
    with Store(tmp_path) as store:
        store.add(run_of(), finished(1.0))
        with pytest.raises(sqlite3.IntegrityError):
            store.add(run_of(), twice)
        assert store.runs("grid") == [(run_of(), finished(1.0))]


def test_another_process_is_refused_while_one_has_the_lock_and_not_after_it_died(tmp_path):
    hold = "import sys, time, pathlib; from stoic.studies.shared.database import locked\n"
    hold += f"with locked(pathlib.Path({str(tmp_path)!r})): print('held', flush=True); time.sleep(60)"
    command = [sys.executable, "-c", hold]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(InvalidParameter, match="another stoic is at work"), locked(tmp_path):
            pass
    finally:
        other.kill()
        other.communicate()
    with locked(tmp_path):
        pass


def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path):
    (tmp_path / Store.name).write_bytes(b"something else entirely, and long enough to be read" * 10)
    before = (tmp_path / Store.name).read_bytes()
    with pytest.raises(DamagedStore, match="no store that stoic wrote"):
        Store(tmp_path)
    assert (tmp_path / Store.name).read_bytes() == before


def test_the_cell_with_the_smallest_error_at_the_end_is_chosen(tmp_path):
    with Store(tmp_path) as store:
        store.add(run_of(0.1, 1.0), finished(1.0, 3.0))
        store.add(run_of(0.2, 1.0), finished(5.0, 2.0))
        store.add(run_of(0.3, 1.0), Outcome("diverged", "inf", points=[point(100, plain=0.0, robust=0.0)]))
        store.add(run_of(0.4, 1.0), Outcome("failed", "boom"))
        store.add(run_of(0.5, 1.0), finished(math.nan))
        cells = chosen_cells(store.runs("grid"), "plain")
    assert cells == {SETTING: (0.2, 1.0, 2.0)}


def test_of_equal_cells_the_one_with_the_smaller_step_then_the_larger_weight_is_chosen(tmp_path):
    with Store(tmp_path) as store:
        for alpha, step in [(0.1, 10.0), (0.1, 1.0), (0.2, 1.0), (0.2, 5.0)]:
            store.add(run_of(alpha, step), finished(1.0))
        cells = chosen_cells(store.runs("grid"), "robust")
    assert cells == {SETTING: (0.2, 1.0, 1.0)}


def test_a_cell_outside_the_grid_of_the_spec_is_not_chosen(tmp_path):
    with Store(tmp_path) as store:
        store.add(run_of(0.1, 1.0), finished(2.0))
        store.add(run_of(0.7, 1.0), finished(1.0))
        store.add(run_of(0.1, 2.0), finished(1.0))
        assert chosen_cells(stored_grid(store, SPEC), "plain") == {SETTING: (0.1, 1.0, 2.0)}


def test_a_setting_without_a_finite_error_has_no_cell(tmp_path):
    with Store(tmp_path) as store:
        store.add(run_of(), Outcome("hopeless", "given up", points=[point(100, plain=1e9, robust=1e9)]))
        assert chosen_cells(store.runs("grid"), "plain") == {}
