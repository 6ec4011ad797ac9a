"""Errors of rivals: means and paired differences, and how often their intervals cover the truth."""

import numpy as np
import pytest

from stoic import GroupDROClassifier, GroupDRORegressor
from stoic.fitting.measuring import ABSOLUTE, LOG_LOSS, WRONG, Errors, half_width, measured
from stoic.fitting.rivals import AVERAGE, CONSTANT, EQUAL, FIT, kind_of_average, rivals_of
from stoic.fitting.schemas import FileRows

RNG = np.random.default_rng(0)
N = 200
X = RNG.standard_normal((N, 2))
GROUPS = np.array(["a", "b"])[np.arange(N) % 4 // 3]  # three rows in four are of a
Y = X @ [1.0, 2.0] + RNG.standard_normal(N)
ROWS = FileRows(X, Y, GROUPS, None)
CLASSES = FileRows(X, np.where(Y > 0.5, "yes", "no"), GROUPS, None)


def errors_from(of_rows, codes, weight=None):
    labels = np.array([f"g{i}" for i in range(codes.max() + 1)], dtype=object)
    weight = np.ones(len(codes)) if weight is None else weight
    return Errors(ABSOLUTE, (FIT, CONSTANT)[: len(of_rows)], of_rows, labels, codes, weight)


def fitted(rows=ROWS, make=GroupDRORegressor, **settings):
    return make(**{"protect": "loss", "temperature": 1.0, **settings}).fit(rows.X, rows.y, groups=rows.groups)


def test_means_and_standard_errors_are_those_of_the_rows():
    of_rows, codes = RNG.exponential(size=(2, 60)), np.arange(60) % 3
    found = errors_from(of_rows, codes).over(codes, np.array(["g0", "g1", "g2"]))
    for i in range(3):
        part = of_rows[:, codes == i]
        np.testing.assert_allclose(found.means[:, i], part.mean(axis=1))
        np.testing.assert_allclose(found.errors[:, i], part.std(axis=1, ddof=1) / np.sqrt(20))
        far = part[0] - part[1]
        np.testing.assert_allclose(found.differences[1, i], far.mean())
        np.testing.assert_allclose(found.difference_errors[1, i], far.std(ddof=1) / np.sqrt(20))


def test_whole_weights_count_as_repeated_rows():
    of_rows, codes, weight = RNG.exponential(size=(2, 30)), np.zeros(30, dtype=int), RNG.integers(1, 4, 30)
    weighted = errors_from(of_rows, codes, weight.astype(float)).whole
    repeated = errors_from(np.repeat(of_rows, weight, axis=1), np.repeat(codes, weight)).whole
    np.testing.assert_allclose(weighted.means, repeated.means)


def test_groups_of_few_test_rows_are_judged_together():
    codes = np.repeat([0, 1, 2, 3], [10, 4, 1, 20])
    errors = errors_from(RNG.exponential(size=(2, 35)), codes)
    assert set(errors.groups.names) == {"g0", "g3"}
    n_others, others = errors.others(errors.groups.names)
    assert (n_others, int(others.rows[0])) == (2, 5)
    np.testing.assert_allclose(others.means[:, 0], errors.of_rows[:, 10:15].mean(axis=1))
    assert errors.others(errors.labels) is None


def test_the_group_with_the_largest_error_comes_first():
    codes = np.repeat([0, 1, 2], 10)
    errors = errors_from(np.stack([codes * 1.0, codes * 0.0]), codes)
    assert errors.groups.names.tolist() == ["g2", "g1", "g0"]


def test_intervals_of_differences_cover_the_truth_as_often_as_they_say():
    rng, covered = np.random.default_rng(1), 0
    for _ in range(400):
        paired = rng.normal(size=(1, 8)) + rng.normal(size=(2, 8)) * [[0.3], [0.5]]
        whole = errors_from(paired, np.zeros(8, dtype=int)).whole
        covered += abs(whole.differences[1, 0]) <= half_width(whole.difference_errors[1, 0], 8)
    assert 367 <= covered <= 393  # 380 expected, three standard deviations each way


def test_more_looks_make_wider_intervals_that_hold_together():
    assert half_width(1.0, 10_000) == pytest.approx(1.96, abs=0.001)
    assert half_width(1.0, 10_000, 20) == pytest.approx(3.02, abs=0.01)
    assert half_width(1.0, 5) > 2.7


def test_rivals_are_the_averages_and_the_median():
    model = fitted()
    rivals = rivals_of(model, ROWS)
    assert list(rivals) == [FIT, AVERAGE, EQUAL, CONSTANT]
    rows = fitted(protect="regret", temperature=np.inf)
    np.testing.assert_allclose(rivals[AVERAGE].coef_, rows.coef_, rtol=1e-6)
    np.testing.assert_allclose(rivals[EQUAL].coef_, fitted(temperature=np.inf).coef_, rtol=1e-6)
    assert rivals[CONSTANT].predict(X)[0] == np.quantile(Y, 0.5, method="inverted_cdf")


@pytest.mark.parametrize(("settings", "kind"), [({"protect": "regret"}, AVERAGE), ({"protect": "loss"}, EQUAL)])
def test_a_fit_that_is_an_average_is_not_fitted_again(settings, kind):
    model = fitted(temperature=np.inf, **settings)
    assert kind_of_average(model) == kind
    assert kind not in rivals_of(model, ROWS)


@pytest.mark.filterwarnings("ignore:groups=None")
def test_without_groups_the_constant_is_the_only_rival():
    rows = ROWS._replace(groups=None)
    assert list(rivals_of(fitted(rows), rows)) == [FIT, CONSTANT]


def test_the_constant_of_classes_has_their_shares_as_probabilities():
    model = fitted(CLASSES, GroupDROClassifier)
    constant = rivals_of(model, CLASSES)[CONSTANT]
    share = np.mean(CLASSES.y == "yes")
    np.testing.assert_allclose(constant.predict_proba(X[:1]), [[1 - share, share]])
    assert set(constant.predict(X)) == {"no"}


def test_classes_are_measured_by_wrong_ones_and_by_log_loss():
    model = fitted(CLASSES, GroupDROClassifier)
    wrong, surprise = measured(model, {FIT: model}, CLASSES)
    assert (wrong.measure, surprise.measure) == (WRONG, LOG_LOSS)
    np.testing.assert_array_equal(wrong.of_rows[0], model.predict(X) != CLASSES.y)
    own = model.predict_proba(X)[np.arange(N), (CLASSES.y == "yes").astype(int)]
    np.testing.assert_allclose(surprise.of_rows[0], -np.log(own))


def test_a_class_that_the_fit_has_not_seen_is_wrong_and_its_log_loss_is_finite():
    model = fitted(CLASSES, GroupDROClassifier)
    strange = CLASSES._replace(y=np.full(N, "zebra"))
    wrong, surprise = measured(model, {FIT: model}, strange)
    assert wrong.of_rows.all()
    assert np.isfinite(surprise.of_rows).all()
    assert surprise.of_rows.min() > 20.0


def test_a_quantile_is_measured_by_its_own_loss_beside_that_quantile():
    model = fitted(loss="quantile", quantile=0.9)
    rivals = rivals_of(model, ROWS)
    (errors,) = measured(model, rivals, ROWS)
    assert errors.measure.name == "mean quantile loss at 0.9"
    residuals = Y - model.predict(X)
    np.testing.assert_allclose(errors.of_rows[0], np.where(residuals > 0, 0.9 * residuals, -0.1 * residuals))
    assert rivals[CONSTANT].predict(X)[0] == np.quantile(Y, 0.9, method="inverted_cdf")


def test_numbers_are_measured_by_absolute_errors():
    model = fitted()
    (errors,) = measured(model, {FIT: model}, ROWS)
    np.testing.assert_allclose(errors.of_rows[0], np.abs(Y - model.predict(X)))
