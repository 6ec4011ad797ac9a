"""A confidence study: the same bits whatever the batches, the processes and the interruptions."""

import math
import sqlite3

import numpy as np
import pytest

import stoic
from stoic.errors import InvalidParameter, SolveFailed
from stoic.studies.confidence import runner, runs
from stoic.studies.confidence.laws import MU, GroupLaw
from stoic.studies.confidence.methods import OURS, RIVALS, method_of
from stoic.studies.confidence.results import load_tails
from stoic.studies.confidence.runner import run_tails
from stoic.studies.confidence.runs import (
    GapOutcome,
    Key,
    LawSetting,
    MethodCell,
    RunBatch,
    batches_of,
    execute,
    keys_of,
    settings_of,
    tuning_cells,
)
from stoic.studies.confidence.spec import HALF_DECADES, TailsSpec
from stoic.studies.confidence.store import TailsStore
from stoic.studies.confidence.tuning import chosen_cells
from stoic.studies.shared.settings import checked

pytestmark = pytest.mark.slow
SMALL = {
    "noises": ("gaussian", "t2.5"),
    "places": ("labels",),
    "methods": ("rrosc-tracked", "rmscg", "asc-pg"),
    "runs": 7,
    "samples": 600,
    "tune_runs": 2,
    "steps": (0.01, 0.1),
    "rates": (400, 800),
    "rate_runs": 3,
    "rate_noises": ("t2.5",),
    "rate_methods": ("rrosc-tracked",),
}
SETTING = LawSetting("t2.5", "labels", 600)


def spec_of(**settings):
    return TailsSpec(**(SMALL | settings))


def contents(folder):
    """Return every run that is stored."""
    with sqlite3.connect(folder / TailsStore.name) as db:
        return db.execute(
            "SELECT * FROM runs ORDER BY part, noise, place, samples, method, step, number"
        ).fetchall()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    run_tails(spec_of(), folder)
    return folder


def test_every_run_is_stored_and_ends_well(undisturbed):
    stored = contents(undisturbed)
    assert len(stored) == 2 * (2 * 2 * 2 + 3 * 7) + 2 * 3
    assert {row[8] for row in stored} == {"finished"}
    results = load_tails(undisturbed)
    assert (results.n_done, results.n_wanted) == (2 * 3 * 7 + 2 * 3, 2 * 3 * 7 + 2 * 3)
    for samples in results.settings.values():
        assert [one.method for one in samples] == ["rrosc-tracked", "rmscg", "asc-pg"]
        assert all(len(one.gaps) == 7 and 0.0 < one.gaps.min() < one.gaps.max() < 10.0 for one in samples)


def test_a_run_is_what_minimize_gives_on_its_own_rows(undisturbed):
    spec, cell = spec_of(), MethodCell("rmscg", 0.1)
    ((_, outcome),) = execute(RunBatch("tuning", SETTING, (cell,), (1,)), spec)
    law = GroupLaw("t2.5")
    problem = law.problem(600, runs.generator("rows", 0, "tuning", *SETTING, 1))
    rng = runs.generator("draws", 0, "tuning", *SETTING, 1, *cell)
    result = stoic.minimize(problem, stoic.RMSCG(step_size=0.1), 2400, seed=rng, engine="compiled")
    assert outcome.gap == law.gap(result.w)
    with TailsStore(undisturbed) as store:
        assert store.runs("tuning", SETTING)[cell][1] == (1, outcome)


def test_methods_of_a_run_do_not_depend_on_each_other():
    cells = (MethodCell("rrosc-tracked"), MethodCell("rmscg", 0.1), MethodCell("rrosc"))
    together = dict(execute(RunBatch("tails", SETTING, cells, (0, 1)), spec_of()))
    for cell in cells:
        for key, outcome in execute(RunBatch("tails", SETTING, (cell,), (1,)), spec_of()):
            assert together[key] == outcome


def test_two_processes_give_the_same_bits_as_one(undisturbed, tmp_path):
    run_tails(spec_of(), tmp_path, jobs=2)
    assert contents(tmp_path) == contents(undisturbed)


class StopError(Exception):
    """Ends a study in the middle, as Ctrl-C would."""


def test_interrupted_in_smaller_batches_it_ends_with_the_same_bits(undisturbed, tmp_path, monkeypatch):
    done, count = [], [0]

    def interrupted(batch, spec):
        count[0] += 1
        if count[0] in {2, 6, 7, 15}:
            raise StopError
        done.append(batch)
        return execute(batch, spec)

    monkeypatch.setattr(runs, "_MOST_RUNS", 2)
    monkeypatch.setattr(runner, "execute", interrupted)
    for _ in range(4):
        with pytest.raises(StopError):
            run_tails(spec_of(), tmp_path)
    run_tails(spec_of(), tmp_path)
    assert contents(tmp_path) == contents(undisturbed)
    assert len(done) == len(set(done)) > 10  # nothing was run twice


def test_more_runs_may_be_added_and_the_old_ones_stay(undisturbed, tmp_path, monkeypatch):
    run_tails(spec_of(runs=3, rate_runs=1, noises=("t2.5",)), tmp_path)
    before = contents(tmp_path)
    run_tails(spec_of(), tmp_path)
    assert set(before) <= set(contents(tmp_path))
    assert contents(tmp_path) == contents(undisturbed)
    monkeypatch.setattr(runner, "execute", lambda *_: pytest.fail("ran again"))
    run_tails(spec_of(runs=5), tmp_path)
    assert {len(one.gaps) for samples in load_tails(tmp_path).settings.values() for one in samples} == {5}


def test_another_seed_in_the_same_folder_is_refused(undisturbed):
    with pytest.raises(InvalidParameter, match=r"seed=0.*--out"):
        run_tails(spec_of(seed=1), undisturbed)


def test_progress_counts_runs(tmp_path):
    seen = []
    run_tails(spec_of(noises=("gaussian",)), tmp_path, progress=lambda *state: seen.append(state))
    assert seen == [
        (0, 8, "tuning"), (8, 8, "tuning"), (0, 21, "tails"), (21, 21, "tails"), (0, 6, "rates"), (3, 6, "rates"),
        (6, 6, "rates"),
    ]  # fmt: skip


def test_a_run_that_fails_is_stored_with_its_reason_and_run_again_on_request(tmp_path, monkeypatch):
    def failing(*cell):
        if cell[0] == "asc-pg" and next(calls) == 9:
            raise RuntimeError("out of luck")
        return method_of(*cell)

    calls = iter(range(100))
    monkeypatch.setattr(runs, "method_of", failing)
    run_tails(spec_of(noises=("t2.5",), rates=()), tmp_path)
    (failure,) = load_tails(tmp_path).failures
    assert failure[1:] == (SETTING, "asc-pg", 1, "RuntimeError: out of luck")
    (sample,) = [one for one in load_tails(tmp_path).settings[SETTING] if one.failed]
    assert (sample.method, sample.gaps.max(), sample.diverged) == ("asc-pg", math.inf, 0)
    monkeypatch.undo()
    run_tails(spec_of(noises=("t2.5",), rates=()), tmp_path)
    assert load_tails(tmp_path).failures == [failure]
    run_tails(spec_of(noises=("t2.5",), rates=()), tmp_path, retry_failed=True)
    assert load_tails(tmp_path).failures == []


def test_a_method_of_which_all_runs_fail_is_an_error(tmp_path):
    with pytest.raises(SolveFailed, match=r"every run of rmscg failed \(gaussian, 1 sample of each group\)"):
        run_tails(spec_of(samples=1, rates=()), tmp_path)


def test_a_run_that_diverges_has_an_infinite_gap():
    batch = RunBatch("tails", SETTING, (MethodCell("asc-pg", 1e6),), (0,))
    ((_, outcome),) = execute(batch, spec_of())
    assert (outcome.gap, outcome.ending) == (math.inf, "diverged")


@pytest.mark.parametrize("w", [np.full(10, 1e200), np.full(10, np.nan), np.full(10, -np.inf)])
def test_the_gap_of_a_point_too_large_to_tell_is_infinite(w):
    with np.errstate(over="ignore", invalid="ignore"):
        assert GroupLaw().gap(w) == math.inf


def test_the_modulus_of_strong_convexity_holds_between_any_two_points():
    law, rng = GroupLaw(), np.random.default_rng(0)
    for _ in range(100):
        one, other = law.optimum + rng.standard_normal((2, law.d))
        middle = law.gap(0.5 * (one + other))
        assert middle <= 0.5 * (law.gap(one) + law.gap(other)) - MU / 8.0 * np.sum((one - other) ** 2) + 1e-12


# Tuning


def fill(store, gaps, method="rmscg"):
    """Store tuning runs, by step."""
    for step, values in gaps.items():
        keys = keys_of("tuning", SETTING, [MethodCell(method, step)], len(values))
        store.add(zip(keys, map(GapOutcome, values), strict=True))


def chosen(folder, gaps):
    count = len(next(iter(gaps.values())))
    spec = spec_of(noises=("t2.5",), methods=("rrosc", "rmscg"), steps=tuple(gaps), tune_runs=count)
    with TailsStore(folder) as store:
        fill(store, gaps)
        return chosen_cells(store, spec)[SETTING]


def test_the_step_with_the_lowest_tail_is_chosen_not_that_with_the_lowest_median(tmp_path):
    gaps = {0.01: [1.0] * 8 + [50.0, 50.0], 0.1: [2.0] * 10, 1.0: [0.5] * 8 + [math.inf] * 2}
    assert chosen(tmp_path, gaps) == {"rrosc": MethodCell("rrosc"), "rmscg": MethodCell("rmscg", 0.1)}


def test_of_equal_tails_the_lower_median_then_the_smaller_step_is_chosen(tmp_path):
    gaps = {3.0: [1.0, 1.0, 9.0], 0.1: [1.0, 2.0, 9.0], 1.0: [1.0, 1.0, 9.0]}
    assert chosen(tmp_path, gaps)["rmscg"] == MethodCell("rmscg", 1.0)
    assert chosen(tmp_path, {k: [math.inf] * 3 for k in (0.1, 1.0, 3.0)})["rmscg"] == MethodCell("rmscg", 0.1)


def test_a_rival_of_which_runs_are_missing_has_no_step_yet(tmp_path):
    spec = spec_of(noises=("t2.5",), steps=(0.1, 1.0), tune_runs=2)
    with TailsStore(tmp_path) as store:
        fill(store, {0.1: [1.0, 1.0], 1.0: [1.0]})
        assert chosen_cells(store, spec) == {SETTING: {"rrosc-tracked": MethodCell("rrosc-tracked")}}


# Names, batches, settings


def test_gaussian_noise_is_one_setting_and_others_have_one_for_each_place():
    settings = settings_of(TailsSpec())
    assert len(settings) == 1 + 4 * 3
    assert settings[0].name == "gaussian"
    assert settings[1].name == "t4.5 labels"
    assert [one.place for one in settings_of(TailsSpec(noises=("gaussian",), places=("both",)))] == ["labels"]


def test_batches_hold_every_run_once_and_none_is_too_large():
    cells = [MethodCell("rrosc"), MethodCell("rmscg", 0.1)]
    keys = keys_of("tails", SETTING, cells, 230)
    missing = [key for key in keys if key.cell != cells[0] or key.number >= 60]
    batches = list(batches_of(missing))
    found = [Key(one.part, one.setting, cell, n) for one in batches for n in one.numbers for cell in one.cells]
    assert sorted(found) == sorted(missing)
    assert max(len(one.numbers) for one in batches) == 50
    large = LawSetting("t2.5", "labels", 400_000)
    assert {len(one.numbers) for one in batches_of(keys_of("rates", large, cells, 24))} == {12}


def test_the_defaults():
    spec = TailsSpec()
    assert set(spec.methods) == {*OURS, *RIVALS} - {"rrosc-m1"}
    assert (spec.runs, spec.samples, spec.steps) == (2000, 20_000, HALF_DECADES)
    assert len(tuning_cells(spec)) == len(RIVALS) * len(HALF_DECADES)


@pytest.mark.parametrize("name", [*OURS, *RIVALS])
def test_every_method_runs_compiled(name):
    batch = RunBatch(
        "tails", LawSetting("t4.5", "both", 2000), (MethodCell(name, 0.01 if name in RIVALS else 0.0),), (0,)
    )
    ((_, outcome),) = execute(batch, spec_of())
    assert (outcome.ending, outcome.message) == ("finished", "")


WRONG = {
    "noises": [(), ("cauchy",), ("t2.5", "t2.5")],
    "places": [(), ("weights",)],
    "methods": [(), ("nonsense",), ("rosc",), ("rmscg", "rmscg")],
    "rate_methods": [("rmscg",), ("x",)],
    "rate_noises": [("x",)],
    "runs": [0, 1.5, "x"],
    "samples": [0],
    "rates": [(0,), (100, 100)],
    "steps": [(), (0.0,), (math.inf,)],
    "deviations": [(1.0,), (0.0, 1.0, 1.0, 1.0), (9.0, 0.1, 0.1, 0.1)],
    "seed": [-1],
    "nonsense": [1],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in WRONG for value in WRONG[name]])
def test_a_wrong_setting_is_named(name, value):
    with pytest.raises(InvalidParameter, match=name):
        checked(TailsSpec, {name: value})


def test_a_folder_without_a_study_is_refused(tmp_path):
    with pytest.raises(InvalidParameter, match=r"no tails\.sqlite"):
        load_tails(tmp_path)
    with TailsStore(tmp_path):
        pass
    with pytest.raises(InvalidParameter, match="holds no study"):
        load_tails(tmp_path)
