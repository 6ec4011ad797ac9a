"""Pictures: what they show, where they are drawn, and what they are made from."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import stoic
from stoic import ConvergenceDisplay, GroupDRORegressor, GroupRiskDisplay, TailDisplay

mpl.use("agg")
RNG = np.random.default_rng(0)
X, GROUPS = RNG.standard_normal((900, 2)), np.array(["a", "b", "c"])[np.arange(900) % 3]
Y = X @ [1.0, 2.0] + (1 + np.arange(900) % 3) * RNG.standard_t(2.5, 900)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return GroupDRORegressor().fit(X, Y, groups=GROUPS)


def test_groups_may_be_a_column_of_the_rows(model):
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(region=GROUPS)
    named = GroupDRORegressor().fit(frame, Y, groups="region")
    risks = GroupRiskDisplay.from_estimator(named, frame, Y, groups="region")
    np.testing.assert_array_equal(risks.groups, ["a", "b", "c"])
    tails = TailDisplay.from_estimator(named, frame, Y, groups="region")
    assert list(tails.targets) == ["all", "a", "b", "c"]


def test_the_risks_are_those_of_the_groups_and_the_worst_is_on_top(model):
    display = GroupRiskDisplay.from_estimator(model, X, Y, groups=GROUPS)
    errors = np.abs(Y - model.predict(X))
    np.testing.assert_allclose(display.risks, [errors[g == GROUPS].mean() for g in "abc"])
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["a (300)", "b (300)", "c (300)"]
    (line,) = display.ax_.get_lines()[:1]
    assert line.get_xdata().tolist() == sorted(display.risks)
    assert display.ax_.get_legend() is None


@pytest.mark.slow
def test_intervals_cover_the_true_risk_as_often_as_they_say():
    rng, covered = np.random.default_rng(1), 0
    for _ in range(200):
        y = rng.exponential(size=300)
        display = GroupRiskDisplay.from_predictions(y, np.zeros(300), groups=np.zeros(300), ax=plt.gca())
        covered += abs(display.risks[0] - 1.0) <= 1.96 * display.errors[0]
    assert 175 <= covered <= 199


def test_a_baseline_is_drawn_beside_the_model(model):
    average = GroupDRORegressor(temperature=np.inf).fit(X, Y, groups=GROUPS)
    display = GroupRiskDisplay.from_estimator(model, X, Y, groups=GROUPS, baseline=average, error="squared")
    squares = np.square(Y - average.predict(X))
    np.testing.assert_allclose(display.baseline, [squares[g == GROUPS].mean() for g in "abc"])
    assert {text.get_text() for text in display.ax_.get_legend().get_texts()} == {"model", "baseline"}
    assert "squared" in display.ax_.get_xlabel()


@pytest.mark.filterwarnings("ignore:the fit did not converge")  # draws, and no leave to go on from them
@pytest.mark.slow
def test_convergence_shows_both_phases_and_truncation():
    drawn = GroupDRORegressor("squared", method="rrosc-tracked", budget=60_000, random_state=0)
    history = drawn.fit(X, Y, groups=GROUPS).history_
    history[-1] = {**history[-1], "truncated_z": 0.5}
    display = ConvergenceDisplay.from_history(history)
    names = {text.get_text() for text in display.ax_.get_legend().get_texts()}
    assert names >= {"average over groups", "groups at risk", "slopes truncated"}
    curve = next(line for line in display.ax_.get_lines() if line.get_label() == "groups at risk")
    assert curve.get_ydata().tolist() == [record["objective"] for record in history if record["phase"] == 1]


def test_convergence_shows_the_loss_on_rows_held_out():
    model = GroupDRORegressor(early_stopping=True).fit(X, Y, groups=GROUPS)
    names = {text.get_text() for text in ConvergenceDisplay.from_estimator(model).ax_.get_legend().get_texts()}
    assert "worst group, held out" in names


@pytest.mark.slow
def test_a_history_of_minimize_may_be_drawn():
    problem = stoic.Problem(stoic.GroupLoss(X, Y, GROUPS), stoic.LogSumExp(5.0))
    result = stoic.minimize(problem, budget=20_000, seed=0, observers={"objective": problem.objective})
    assert ConvergenceDisplay.from_history(result.history).ax_.get_xlabel() == "rows drawn"
    with pytest.raises(stoic.InvalidProblem, match="no 'objective'"):
        ConvergenceDisplay.from_history(stoic.minimize(problem, budget=20_000, seed=0).history)


def test_tails_of_targets_and_of_residuals(model):
    display = TailDisplay.from_predictions(Y, groups=GROUPS)
    assert [line.get_label() for line in display.axes_[1].get_lines()] == ["all", "a", "b", "c"]
    residuals = TailDisplay.from_estimator(model, X, Y)
    np.testing.assert_allclose(residuals.targets["all"], Y - model.predict(X))


def test_groups_without_a_tail_have_no_curve():
    labels = np.where(np.arange(900) < 5, "few", "many")
    display = TailDisplay.from_predictions(Y, groups=labels)
    assert [line.get_label() for line in display.axes_[1].get_lines()] == ["all", "many"]


def test_axes_that_are_given_are_used(model):
    figure, axes = plt.subplots(1, 4)
    assert GroupRiskDisplay.from_estimator(model, X, Y, groups=GROUPS, ax=axes[0]).ax_ is axes[0]
    assert ConvergenceDisplay.from_estimator(model, axes[1]).figure_ is figure
    assert TailDisplay.from_predictions(Y, axes=axes[2:]).axes_[1] is axes[3]
    with pytest.raises(stoic.InvalidProblem, match="3 axes were given; two are needed"):
        TailDisplay.from_predictions(Y, axes=axes[:3])


@pytest.mark.parametrize(("degrees", "low", "high"), [(1.5, 1.3, 1.8), (2.5, 2.0, 2.8), (30.0, 4.5, 20.0)])
def test_the_tail_index_of_students_t_is_about_its_degrees(degrees, low, high):
    found = stoic.tail_index(np.random.default_rng(2).standard_t(degrees, 50_000))
    assert low < found.value < high
    assert found.low < found.value < found.high


def test_a_tail_needs_rows_that_differ():
    with pytest.raises(stoic.InvalidProblem, match="0 of 100 targets differ from their median"):
        stoic.tail_index(np.ones(100))
