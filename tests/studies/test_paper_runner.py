"""Running an experiment: the same bits whatever the order, the processes and the interruptions."""

import math

import numpy as np
import pytest

import stoic
from stoic.errors import InvalidParameter, SolveFailed
from stoic.studies.paper import runner, runs
from stoic.studies.paper.data import first_rows, load_material, prepare_material, save_material, with_noise
from stoic.studies.paper.results import load_results
from stoic.studies.paper.runner import run_experiment
from stoic.studies.paper.runs import Outcome, Run, Setting, grid_of, solver_for
from stoic.studies.paper.scores import Scores, mean_squared, robust_mean_squared, worst_group
from stoic.studies.paper.spec import Spec
from stoic.studies.paper.store import Store
from stoic.studies.shared import resume
from stoic.studies.shared.methods import UNTUNED
from stoic.studies.shared.seeds import generator

pytestmark = pytest.mark.slow
SMALL = {
    "size": 0.005,
    "methods": ("rrosc", "rmscg", "asc-pg", "auto"),
    "alphas": (1e-3,),
    "steps": (1e-2, 1e-1),
    "budget": 2000,
    "trials": 2,
    "evaluations": 4,
    "batch_size": 1,
    "n_stages": 2,
}


def spec_of(**settings):
    return Spec(**(SMALL | settings))


def contents(folder):
    """Return all that is stored, timings aside."""
    with Store(folder) as store:
        return [
            (run, outcome.ending, outcome.samples, [{**point, "seconds": 0.0} for point in outcome.points])
            for phase in ("grid", "trial")
            for run, outcome in store.runs(phase)
        ]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    run_experiment(spec_of(), folder)
    return folder


def test_every_cell_and_every_trial_is_stored(undisturbed):
    with Store(undisturbed) as store:
        assert {stored.run for stored in store.runs("grid")} == set(grid_of(spec_of()))
        assert all(stored.outcome.ending == "finished" for stored in store.runs("trial"))
    results = load_results(undisturbed)
    assert len(results.main) == 2 * 4
    for curve in results.main:
        assert curve.scores["mse"].shape == (2, len(curve.samples))
        assert np.isfinite(curve.final("mse")).all()
    assert not (undisturbed / "scratch").exists()


def test_two_processes_give_the_same_bits_as_one(undisturbed, tmp_path):
    run_experiment(spec_of(), tmp_path, jobs=2)
    assert contents(tmp_path) == contents(undisturbed)


class StopError(Exception):
    """Ends a run in the middle, as Ctrl-C would."""


def test_an_interrupted_experiment_goes_on_and_ends_with_the_same_bits(undisturbed, tmp_path, monkeypatch):
    done = []

    def interrupted(run, spec, folder):
        if len(done) in {3, 9, 10, 17}:
            done.append(None)
            raise StopError
        done.append(run)
        return execute(run, spec, folder)

    execute = runs.execute
    monkeypatch.setattr(runner, "execute", interrupted)
    for _ in range(4):
        with pytest.raises(StopError):
            run_experiment(spec_of(), tmp_path)
    run_experiment(spec_of(), tmp_path)
    assert contents(tmp_path) == contents(undisturbed)
    kept = [run for run in done if run is not None]
    assert len(kept) == len(set(kept))  # nothing was run twice


def test_what_is_stored_is_not_run_again(undisturbed, monkeypatch):
    before = contents(undisturbed)
    monkeypatch.setattr(runner, "execute", lambda *_: pytest.fail("ran again"))
    monkeypatch.setattr(runner, "prepare_material", lambda *_: pytest.fail("data were prepared for nothing"))
    run_experiment(spec_of(), undisturbed)
    assert contents(undisturbed) == before


def test_a_run_that_fails_is_stored_with_its_reason_and_run_again_on_request(undisturbed, tmp_path, monkeypatch):
    def failing(self, run):
        if run.setting.method == "rmscg" and run.step == 1e-2:
            raise RuntimeError("out of luck")
        return outcome(self, run)

    outcome = runs.Worker.outcome
    monkeypatch.setattr(runs.Worker, "outcome", failing)
    run_experiment(spec_of(), tmp_path)
    failed = load_results(tmp_path).failed
    assert {stored.outcome.message for stored in failed} == {"RuntimeError: out of luck"}
    assert {stored.run.step for stored in failed if stored.run.phase == "grid"} == {1e-2}
    monkeypatch.undo()
    run_experiment(spec_of(), tmp_path)
    assert load_results(tmp_path).failed == failed
    run_experiment(spec_of(), tmp_path, retry_failed=True)
    assert load_results(tmp_path).failed == []
    assert [c for c in contents(tmp_path) if c[0].phase == "grid"] == [
        c for c in contents(undisturbed) if c[0].phase == "grid"
    ]


def test_what_the_noise_of_the_grid_was_is_kept(undisturbed):
    with Store(undisturbed) as store:
        facts = store.facts()
    assert set(facts["noise"]) == set(facts["spec"]["noise"])
    for drawn in facts["noise"].values():
        assert drawn["median"] ** 2 <= drawn["mean square"] <= drawn["largest"] ** 2


def test_processes_that_are_killed_are_started_again_but_not_for_ever(undisturbed, tmp_path, monkeypatch):
    def crashing(*work):
        for place, found in enumerate(results(*work)):
            if place == 5 and crashes:
                raise crashes.pop()
            yield found

    results = resume._results
    monkeypatch.setattr(resume, "_results", crashing)
    crashes = [resume.TerminatedWorkerError("killed")] * 3
    run_experiment(spec_of(), tmp_path / "thrice")
    assert contents(tmp_path / "thrice") == contents(undisturbed)

    def crash(*work):
        raise resume.TerminatedWorkerError("killed")

    monkeypatch.setattr(resume, "_results", crash)
    with pytest.raises(SolveFailed, match=r"killed 4 times.*fewer --jobs"):
        run_experiment(spec_of(), tmp_path / "always")


def test_another_experiment_in_the_same_folder_is_refused(undisturbed):
    with pytest.raises(InvalidParameter, match=r"budget=2000.*--out"):
        run_experiment(spec_of(budget=3000), undisturbed)


def test_an_experiment_may_be_extended(undisturbed, tmp_path):
    run_experiment(spec_of(methods=("rrosc",), trials=1), tmp_path)
    run_experiment(spec_of(), tmp_path)
    assert contents(tmp_path) == contents(undisturbed)


def test_an_experiment_of_which_no_cell_ends_well_says_so(tmp_path):
    with pytest.raises(SolveFailed, match="widen the grid"):
        run_experiment(spec_of(methods=("asc-pg",), regularizers=("l2",), steps=(1e5,), alphas=(1e-5,)), tmp_path)
    (stored,) = Store(tmp_path).runs("grid")
    assert stored.outcome.ending in {"diverged", "hopeless"}


def test_noise_depends_on_the_trial_and_not_on_the_method():
    spec = spec_of()
    material = prepare_material(spec)
    one, again, other = (with_noise(material.train, spec, "train", k) for k in (0, 0, 1))
    np.testing.assert_array_equal(one.y, again.y)
    assert not (one.y == other.y).all()
    assert set(one.groups) == set(range(6))
    np.testing.assert_array_equal(with_noise(material.train, spec_of(noise=()), "train", 0).y, material.train.y)


def test_material_comes_back_from_its_files_and_its_first_rows_are_views(tmp_path):
    material = prepare_material(spec_of())
    save_material(material, tmp_path)
    back = load_material(tmp_path)
    assert back.n_fit == material.n_fit == round(0.9 * len(material.train.y))
    for ours, theirs in ((back.train, material.train), (back.test, material.test)):
        assert (ours.X != theirs.X).nnz == 0
        np.testing.assert_array_equal(ours.y, theirs.y)
    part = first_rows(back.train, back.n_fit)
    assert np.shares_memory(part.X.data, back.train.X.data)
    np.testing.assert_array_equal(part.X.toarray(), material.train.X[: back.n_fit].toarray())


def test_a_dense_file_can_be_the_data(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["a,b,site,y", *(f"{a},{b},{'xyz'[k % 3]},{a - b}" for k, (a, b) in enumerate(rng.random((60, 2))))]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    spec = spec_of(data=str(path), target="y", group="site", noise=())
    material = prepare_material(spec)
    save_material(material, tmp_path)
    assert material.group_names == ("x", "y", "z")
    assert len(material.train.y) + len(material.test.y) == 60
    np.testing.assert_array_equal(load_material(tmp_path).train.X, material.train.X)
    run_experiment(spec, tmp_path / "out")
    assert len(load_results(tmp_path / "out").main) == 2 * 4


def test_scores():
    squares, groups = np.array([1.0, 3.0, 100.0, 0.0]), np.array([0, 0, 2, 2])
    assert mean_squared(squares, groups) == 26.0
    assert worst_group(squares, groups) == 50.0
    wild = np.append(np.ones(299), 1e12)
    assert robust_mean_squared(wild, np.zeros(300, dtype=int)) == 1.0


def test_scores_multiply_the_rows_once_for_each_point():
    rows = prepare_material(spec_of()).test
    calls = []
    scores = Scores(rows, {"a": lambda s, g: calls.append(1) or s.sum(), "b": lambda s, g: 2.0})
    w = np.zeros(rows.X.shape[1])
    assert scores.observer("b")(w) == 2.0
    assert scores.observer("a")(w) == pytest.approx(np.square(rows.y).sum())
    assert len(calls) == 1


def test_a_hopeless_cell_is_given_up(tmp_path):
    spec = spec_of(methods=("rrosc",), radius=1e9, budget=6000)
    save_material(prepare_material(spec), tmp_path)
    run = Run("grid", Setting("squared", 10.0, "l2", "rrosc"), 1e-5, 1e5)
    outcome = runs.execute(run, spec, tmp_path)
    assert outcome.ending in {"hopeless", "diverged"}
    assert outcome.samples < spec.budget


def test_a_failure_of_a_run_is_an_outcome(tmp_path):
    outcome = runs.execute(next(grid_of(spec_of())), spec_of(), tmp_path / "nothing here")
    assert isinstance(outcome, Outcome)
    assert outcome.ending == "failed"
    assert "FileNotFoundError" in outcome.message
    assert not math.isnan(outcome.seconds)


def test_draws_of_a_run_depend_on_its_name():
    cells = list(grid_of(spec_of()))
    assert len({generator(0, "draws", run.key).random() for run in cells}) == len(cells)


def test_auto_is_run_untuned_as_minimize_does_it(undisturbed):
    with Store(undisturbed) as store:
        cells = [stored for stored in store.runs("grid") if stored.run.setting.method == "auto"]
    assert {(stored.run.alpha, stored.run.step) for stored in cells} == {(a, UNTUNED) for a in spec_of().alphas}
    made = solver_for("auto", UNTUNED, spec_of(), pilot=None)
    assert made == stoic.Auto()
