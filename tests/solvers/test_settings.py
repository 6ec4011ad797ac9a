"""What solvers share: settings checked by their annotations, sequences of steps, averages, the end of a run."""

import math
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import stoic
from stoic.checks import Count
from stoic.errors import InvalidParameter
from stoic.solvers.base import AUTO, Info, PowerLaw, Settings, running_mean

REFUSED = [
    (stoic.MSCG, {"step_size": 0.0}),
    (stoic.MSCG, {"step_size": -1.0}),
    (stoic.MSCG, {"batch_size": 0}),
    (stoic.MSCG, {"n_steps": 0}),
    (stoic.MSCG, {"mean": 0.05}),
    (stoic.SCGD, {"steps": 0.1}),
    (stoic.SCGD, {"weights": 0.1}),
    (stoic.SCGD, {"weights": PowerLaw(1.001)}),
    (stoic.SCGD, {"answer": "first"}),
    (stoic.RMSCG, {"n_stages": 0}),
    (stoic.ProxBoost, {"n_trials": 0}),
    (stoic.ProxBoost, {"solver": stoic.MSCG}),
    (stoic.ProxBoost, {"solver": "mscg"}),
    (stoic.ProxBoost, {"mu": 0.0}),
    (stoic.ROSC, {"reference_size": 0}),
    (stoic.ROSC, {"reference_mean": 0.05}),
    (stoic.ROSC, {"radius": 0.0}),
    (stoic.ROSC, {"levels": 3.0}),
    (stoic.ROSC, {"levels": 3}),
    (stoic.ROSC, {"truncates": "rows"}),
    (stoic.ClippedSGD, {"clip": 0.0}),
    (stoic.CIVR, {"anchor_size": -1}),
    (stoic.ALEXR, {"weight": 1.001}),
    (stoic.ALEXR, {"weight": -0.001}),
    (stoic.ALEXR, {"extrapolation": -0.001}),
    (stoic.RSMD, {"factor": -0.001}),
    (stoic.RSMD, {"least": -0.001}),
    (stoic.RCIVR, {"rule": "infinite-sum"}),
]

TAKEN = [
    (stoic.SCGD, {"weights": PowerLaw(1.0)}),
    (stoic.SCGD, {"answer": "last"}),
    (stoic.CIVR, {"anchor_size": 0}),
    (stoic.ALEXR, {"weight": 0.0, "extrapolation": 0.0}),
    (stoic.ALEXR, {"weight": 1.0}),
    (stoic.ROSC, {"radius": 1e-300}),
    (stoic.ROSC, {"radius": math.inf}),
    (stoic.RCIVR, {"rule": "finite-sum"}),
    (stoic.RCIVR, {"rule": "expectation"}),
]


@pytest.mark.parametrize(("kind", "settings"), REFUSED, ids=repr)
def test_a_setting_out_of_its_range_is_refused_by_name(kind, settings):
    (name,) = settings
    with pytest.raises(InvalidParameter, match=f"^{name}="):
        kind(**settings)


@pytest.mark.parametrize(("kind", "settings"), TAKEN, ids=repr)
def test_a_setting_at_the_end_of_its_range_is_taken(kind, settings):
    solver = kind(**settings)
    assert {name: getattr(solver, name) for name in settings} == settings


def test_a_power_law_starts_at_its_start_and_bends_after_its_delay():
    law = PowerLaw(start=0.8, power=0.5, delay=3.0)
    assert [law.at(k) for k in (0, 9, 45)] == pytest.approx([0.8, 0.4, 0.2])
    assert {PowerLaw(0.8).at(k) for k in (0, 1, 1000)} == {0.8}


@pytest.mark.parametrize("settings", [(0.0,), (-1.0,), (1.0, -0.1), (1.0, 1.0, 0.0)])
def test_a_power_law_has_a_positive_start_a_power_and_a_positive_delay(settings):
    with pytest.raises(InvalidParameter):
        PowerLaw(*settings)


def test_the_running_mean_is_that_of_all_iterates_and_begins_with_the_first():
    points = np.random.default_rng(0).standard_normal((7, 3))
    average = np.full(3, np.nan)
    for count, w in enumerate(points, start=1):
        average = running_mean(average, w, count)
        np.testing.assert_allclose(average, points[:count].mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("solver", [stoic.MSCG(n_steps=3), stoic.SCGD(n_steps=3), stoic.CIVR(n_steps=3)])
def test_a_solver_has_finished_after_its_last_step_and_not_before(solver):
    assert [solver.finished(SimpleNamespace(t=t)) for t in (0, 2, 3, 4)] == [False, False, True, True]


def test_the_answer_is_the_average_or_the_last_iterate_as_the_method_says():
    state = SimpleNamespace(w="last", average="average")
    assert stoic.MSCG().output(state) == stoic.ROSC().output(state) == stoic.ALEXR().output(state) == "average"
    assert stoic.SCGD(answer="average").output(state) == "average"
    assert stoic.SCGD(answer="last").output(state) == stoic.CIVR().output(state) == "last"


def test_only_solvers_with_an_open_setting_need_a_pilot_and_recipes_always_do():
    closed = stoic.MSCG(step_size=0.1, batch_size=1)
    assert not closed.needs_pilot
    assert stoic.MSCG(step_size=0.1).needs_pilot
    assert stoic.RMSCG(n_stages=1, step_size=0.1, batch_size=1, n_steps=1).needs_pilot
    assert not stoic.Restarted([closed]).needs_pilot
    assert stoic.Restarted([closed, stoic.MSCG()]).needs_pilot


def test_defaults_are_those_of_the_docstrings():
    assert stoic.Calibrated(1.0, 1.0) == stoic.Calibrated(1.0, 1.0, factor=0.1, least=3.0)
    assert stoic.ALEXR() == stoic.ALEXR(weight=0.1, extrapolation=1.0)
    assert stoic.RSMD() == stoic.RSMD(factor=0.1, least=3.0)
    assert stoic.ProxBoost() == stoic.ProxBoost(solver=stoic.MSCG(), n_trials=5)
    assert stoic.Newton() == stoic.Newton(n_steps=200)


def test_a_step_that_truncates_nothing_says_that_none_was_watched():
    assert Info() == (0, 0, 0, 0)


def test_a_batch_too_small_for_its_mean_is_refused_only_once_it_is_known():
    mean = stoic.SmallestBall(0.1)
    stoic.MSCG(mean=mean).check(None)
    with pytest.raises(InvalidParameter, match="batch_size=3 is below the 42 blocks"):
        stoic.MSCG(mean=mean, batch_size=3).check(None)


def test_the_samples_of_a_plan_are_those_of_its_batches():
    inner = stoic.GroupLoss(np.ones((6, 1)), np.arange(6.0), np.arange(6) % 3)
    solver = stoic.ClippedSGD(step_size=0.1, batch_size=4, clip=1.0, n_steps=7)
    assert solver.planned_samples(inner) == 7 * 3 * 4


@dataclass(frozen=True)
class Own(Settings):
    """A solver of the user's own: names of ours have no meaning here."""

    weights: tuple[float, ...] = (0.5, 0.5)
    weight: float = 7.0
    lenght: Count = 3


def test_a_field_of_a_solver_of_ones_own_may_have_any_name():
    assert Own().weights == (0.5, 0.5)
    assert Own(weight=AUTO).needs_pilot


def test_an_annotation_checks_a_field_of_any_name():
    with pytest.raises(InvalidParameter, match=r"lenght=0 is not a whole number >= 1\."):
        Own(lenght=0)
