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
def test_convergence_shows_the_last_objective_alone_and_truncation():
    drawn = GroupDRORegressor("squared", method="rrosc-tracked", budget=60_000, random_state=0)
    history = drawn.fit(X, Y, groups=GROUPS).history_
    history[-1] = {**history[-1], "truncated_z": 0.5}
    display = ConvergenceDisplay.from_history(history)
    assert "slopes truncated" in {text.get_text() for text in display.ax_.get_legend().get_texts()}
    (curve,) = display.ax_.get_lines()
    assert curve.get_ydata().tolist() == [record["objective"] for record in history if record["phase"] == 1]


def test_the_loss_on_rows_held_out_has_axes_of_its_own(model):
    stopped = GroupDRORegressor(early_stopping=True).fit(X, Y, groups=GROUPS)
    display = ConvergenceDisplay.from_estimator(stopped, show="validation_loss")
    watched = [record["validation_loss"] for record in stopped.history_ if "validation_loss" in record]
    (curve,) = display.ax_.get_lines()
    assert curve.get_ydata().tolist() == watched
    assert "held out" in display.ax_.get_ylabel()
    assert len(ConvergenceDisplay.from_estimator(stopped).ax_.get_lines()) == 1
    with pytest.raises(stoic.InvalidProblem, match="no 'validation_loss'; fit a model with early_stopping=True"):
        ConvergenceDisplay.from_estimator(model, show="validation_loss")
    with pytest.raises(stoic.InvalidParameter, match="show='loss' is not one of 'objective', 'validation_loss'"):
        ConvergenceDisplay.from_estimator(model, show="loss")


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


def test_what_is_settled_looks_so():
    history = [{"samples": 100.0 * k, "objective": 14.0 + 1e-9 * k} for k in range(4)]
    low, high = ConvergenceDisplay.from_history(history).ax_.get_ylim()
    assert high - low > 0.1
    falling = [{"samples": 100.0 * k, "objective": 14.0 - k} for k in range(4)]
    low, high = ConvergenceDisplay.from_history(falling).ax_.get_ylim()
    assert high - low < 4.0


def test_a_long_tail_is_drawn_from_few_points():
    y = np.random.default_rng(2).standard_t(2.0, 30_000)
    display = TailDisplay.from_predictions(y)
    for ax in display.axes_:
        (curve,) = [line for line in ax.get_lines() if len(line.get_xdata()) > 2]
        assert len(curve.get_xdata()) <= 400
    shares = display.axes_[1].get_lines()[0].get_ydata()
    assert (shares[0], shares[-1]) == (1 / 30_000, 1.0)


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


def test_of_very_many_groups_the_worst_are_drawn_in_a_picture_of_ordinary_size():
    y, groups = np.arange(3000.0), np.arange(3000)
    display = GroupRiskDisplay.from_predictions(y, np.zeros(3000), groups=groups)
    assert display.figure_.get_size_inches()[1] < 20
    assert display.ax_.get_yticklabels()[-1].get_text() == "2999 (1)"
    assert (len(display.ax_.get_yticks()), len(display.risks)) == (50, 3000)
    assert display.ax_.get_ylabel() == "the 50 worst of 3,000 groups"


def test_names_of_groups_are_drawn_as_they_are():
    names = np.array(["$10k-$20k", "_low", "a\nb", "$\\frac$"])
    groups = np.repeat(names, 100)
    risks = GroupRiskDisplay.from_predictions(np.arange(400.0), np.zeros(400), groups=groups)
    tails = TailDisplay.from_predictions(RNG.standard_t(2.5, 400), groups=groups)
    for figure in (risks.figure_, tails.figure_):
        figure.canvas.draw()
    shown = {text.get_text().strip() for text in tails.axes_[1].get_legend().get_texts()}
    assert shown == {"all", "\\$10k-\\$20k", "_low", "a\\nb", "\\$\\frac\\$"}


def test_errors_of_any_size_are_drawn():
    y = np.where(np.arange(400) % 7 == 0, 1e300, RNG.standard_normal(400))
    risks = GroupRiskDisplay.from_predictions(y, np.zeros(400), groups=np.arange(400) % 2, baseline=y / 2.0)
    tails = TailDisplay.from_predictions(y)
    course = ConvergenceDisplay.from_history([{"samples": i, "objective": 10.0**i} for i in (1, 100, 308)])
    for figure in (risks.figure_, tails.figure_, course.figure_):
        figure.canvas.draw()


def test_targets_without_a_tail_are_an_empty_picture():
    TailDisplay.from_predictions(np.ones(50)).figure_.canvas.draw()
