"""A CSR matrix and the array with its numbers give one model; so do other units, and other zeros."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st

from stoic import GroupDROClassifier, GroupDRORegressor, GroupLoss, Linear, Problem
from stoic.estimators.drawing import KernelRows
from stoic.estimators.scales import Scaling
from stoic.inners import row_squares
from stoic.regularizers import L2

N = 90
may_not_converge = pytest.mark.filterwarnings("ignore:the fit did not converge")


def table(seed=0, n=N):
    """Years, two categories of which one is rare, mostly zeros, a constant and large numbers, beside groups."""
    rng = np.random.default_rng(seed)
    category, groups = rng.choice(3, n, p=[0.7, 0.25, 0.05]), np.arange(n) % 3
    category[0] = 2
    years, mostly_zero = rng.integers(1990, 2020, n), rng.standard_normal(n) * (rng.random(n) < 0.3)
    columns = years, category == 1, category == 2, mostly_zero, np.full(n, 7.0), 1e6 * rng.exponential(size=n)
    X = np.column_stack(columns).astype(float)
    effect = 0.1 * (years - 2005) + 2.0 * (category == 1) - mostly_zero + 1e-6 * X[:, 5]
    return X, effect + (1 + groups) * 0.3 * rng.standard_t(3.0, n), groups


def predictions(model, X):
    return model.predict_proba(X) if isinstance(model, GroupDROClassifier) else model.predict(X)


def distance(one, other):
    """Return the largest difference in proportion to how predictions spread; as it is where they do not."""
    return np.abs(one - other).max() / (other.std() or 1.0)


settings_of_both = st.fixed_dictionaries(
    {
        "penalty": st.sampled_from(["l2", "l1", "elasticnet", "none"]),
        "protect": st.sampled_from(["loss", "regret"]),
        "fit_intercept": st.booleans(),
        "standardize": st.sampled_from(["auto", True, False]),
        "temperature": st.sampled_from(["auto", 4.0, np.inf, np.inf]),
    }
)
weighted = st.booleans()
losses = st.sampled_from(["huber", "squared", "absolute", "quantile"])


@may_not_converge
@pytest.mark.slow
@given(settings_of_both, losses, weighted, st.integers(0, 9))
@settings(max_examples=24)
def test_a_regressor_predicts_the_same_from_csr_as_from_an_array(chosen, loss, has_weight, seed):
    X, y, groups = table(seed)
    weight = np.random.default_rng(seed).uniform(0.1, 2.0, N) if has_weight else None
    dense, csr = (
        GroupDRORegressor(loss, quantile=0.7, random_state=0, **chosen).fit(kind, y, groups, weight).predict(kind)
        for kind in (X, sp.csr_array(X))
    )
    assert distance(csr, dense) < 1e-6


@may_not_converge
@pytest.mark.slow
@given(settings_of_both, weighted, st.integers(2, 3), st.integers(0, 9))
@settings(max_examples=20)
def test_a_classifier_predicts_the_same_from_csr_as_from_an_array(chosen, has_weight, n_classes, seed):
    X, y, groups = table(seed)
    classes = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    weight = np.random.default_rng(seed).uniform(0.1, 2.0, N) if has_weight else None
    dense, csr = (
        GroupDROClassifier(random_state=0, **chosen).fit(kind, classes, groups, weight).predict_proba(kind)
        for kind in (X, sp.csr_array(X))
    )
    assert distance(csr, dense) < 1e-6


@pytest.mark.parametrize("protect", ["loss", "regret"])
def test_csr_matrices_of_float32_and_entries_stored_twice_predict_what_arrays_do(protect):
    X, y, groups = table()
    plain = GroupDRORegressor(protect=protect, random_state=0).fit(X, y, groups)
    single = GroupDRORegressor(protect=protect, random_state=0).fit(sp.csr_array(X, dtype=np.float32), y, groups)
    assert distance(single.predict(X), plain.predict(X)) < 1e-4
    csr = sp.csr_array(X)
    data, ends = np.repeat(csr.data / 2.0, 2), 2 * csr.indptr
    twice = sp.csr_array((data, np.repeat(csr.indices, 2), ends), shape=X.shape)
    assert (
        distance(
            GroupDRORegressor(protect=protect, random_state=0).fit(twice, y, groups).predict(X), plain.predict(X)
        )
        < 1e-9
    )
    assert len(twice.data) == len(data)


def test_learning_in_parts_gives_the_same_from_csr_as_from_arrays():
    X, y, groups = table(n=300)
    dense, csr = GroupDRORegressor(), GroupDRORegressor()
    for part in (slice(0, 200), slice(200, 300)):
        dense.partial_fit(X[part], y[part], groups=groups[part])
        csr.partial_fit(sp.csr_array(X[part]), y[part], groups=groups[part])
    assert distance(csr.predict(X), dense.predict(X)) < 1e-8


# --- units and zeros ---


@may_not_converge
@pytest.mark.slow
@given(st.integers(-8, 8), st.integers(0, 5), st.sampled_from(["l2", "l1"]), st.booleans(), st.booleans())
@settings(max_examples=14)
def test_the_unit_of_a_column_does_not_matter(power, column, penalty, is_csr, fit_intercept):
    X, y, groups = table()
    unit = np.ones(6)
    unit[column] = 10.0**power
    kind = sp.csr_array if is_csr else np.asarray
    one, other = (
        GroupDRORegressor(penalty=penalty, fit_intercept=fit_intercept, temperature=4.0)
        .fit(A, y, groups)
        .predict(A)
        for A in (kind(X), kind(X * unit))
    )
    assert distance(other, one) < 1e-6


@may_not_converge
@pytest.mark.slow
@given(losses, st.integers(-8, 8), st.floats(-1e4, 1e4), st.booleans(), st.sampled_from([True, False]))
@settings(max_examples=14)
def test_predictions_follow_the_unit_and_the_zero_of_y(loss, power, shift, is_csr, standardize):
    X, y, groups = table()
    X, moved = (sp.csr_array(X) if is_csr else X), 10.0**power * (y + shift)
    model = GroupDRORegressor(loss, standardize=standardize, temperature=4.0)
    one, other = (model.fit(X, target, groups).predict(X) for target in (y, moved))
    assert distance(other / 10.0**power - shift, one) < 1e-6


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_the_zero_of_a_dense_column_does_not_matter(standardize, penalty):
    X, y, groups = table()
    moved = X + np.array([-2005.0, 4.0, -3.0, 10.0, 1.0, 0.0])
    X[:, 5], moved[:, 5] = X[:, 5] / 1e6, X[:, 5] / 1e6 + 30.0
    one, other = (GroupDRORegressor(penalty=penalty, standardize=standardize) for _ in range(2))
    assert distance(other.fit(moved, y, groups).predict(moved), one.fit(X, y, groups).predict(X)) < 1e-6
    assert other.memory_.regularizer.alpha == pytest.approx(one.memory_.regularizer.alpha, rel=1e-9)


# --- scales ---


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weight", [None, np.random.default_rng(1).uniform(size=N)])
def test_columns_have_variance_one_and_rare_ones_three_times_the_share_of_their_rows(kind, weight):
    X, _, _ = table()
    found, shares = Scaling.of(kind(X), weight, centered=True), np.ones(N) if weight is None else weight
    mean = np.average(X, axis=0, weights=shares)
    left = np.average(np.square((X - found.center) / found.scale), axis=0, weights=shares)
    share = [np.average(X[:, k] != 0.0, weights=shares) for k in (1, 2, 3)]
    np.testing.assert_allclose(found.center, mean, rtol=1e-12)
    np.testing.assert_allclose(
        left, [1.0, *np.minimum(3.0 * np.array(share), 1.0), 0.0, 1.0], rtol=1e-9, atol=1e-20
    )


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_without_an_intercept_columns_have_mean_square_one_about_zero(kind):
    X, _, _ = table()
    found = Scaling.of(kind(X), None, centered=False)
    assert not found.center.any()
    np.testing.assert_allclose(np.square(X[:, [0, 4, 5]] / found.scale[[0, 4, 5]]).mean(axis=0), 1.0, rtol=1e-12)


def test_which_value_of_a_column_is_the_rare_one_does_not_matter():
    rare = np.random.default_rng(0).random((500, 1)) < 0.04
    one, other = (Scaling.of(np.asarray(A, dtype=float), None, centered=True) for A in (rare, ~rare))
    full = Scaling.of(sp.csr_array((~rare).astype(float)), None, centered=True)
    np.testing.assert_allclose([other.scale, full.scale], [one.scale, one.scale], rtol=1e-9)


def test_a_constant_column_is_told_from_its_rounding():
    X = np.full((3000, 2), 0.1)
    for kind in (np.asarray, sp.csr_array):
        np.testing.assert_allclose(Scaling.of(kind(X), None, centered=True).scale, 0.1)


def test_a_matrix_without_entries_has_scales():
    found = Scaling.of(sp.csr_array((4, 3)), None, centered=True)
    assert found.is_none


def test_moments_are_those_of_all_parts_of_a_long_matrix(monkeypatch):
    X, _, _ = table()
    whole = Scaling.of(sp.csr_array(X), None, centered=True)
    squares = row_squares.row_squares(sp.csr_array(X), whole.center, whole.scale)
    monkeypatch.setattr(row_squares, "_ENTRIES", 20)
    parts = Scaling.of(sp.csr_array(X), None, centered=True)
    np.testing.assert_allclose(parts.scale, whole.scale, rtol=1e-12)
    for same in (sp.csr_array(X), X):
        np.testing.assert_allclose(row_squares.row_squares(same, whole.center, whole.scale), squares, rtol=1e-8)


# --- draws ---


def test_rows_for_kernels_are_the_same_problem_in_another_variable():
    X, y, groups = table()
    csr, scaling = sp.csr_array(X), Scaling.of(X, None, centered=True)
    problem = Problem(
        GroupLoss(csr, y, groups, intercept=True, center=scaling.center, scale=scaling.scale),
        Linear([1, 1, 1]),
        L2(0.1),
    )
    rows, w = KernelRows(csr, scaling), np.random.default_rng(0).standard_normal(7)
    moved = rows.problem(problem)
    assert moved.objective(rows.forward(w)) == pytest.approx(problem.objective(w), rel=1e-12)
    np.testing.assert_allclose(rows.back(rows.forward(w)), w, rtol=1e-12)


def test_no_zero_is_ever_stored_and_columns_without_one_are_centered():
    X, _, _ = table()
    csr = sp.csr_array(X)
    scaling = Scaling.of(csr, None, centered=True)
    kept, left = scaling.applied(csr)
    assert kept.nnz == csr.nnz
    np.testing.assert_array_equal(left.center == 0.0, [True, False, False, False, True, True])
    np.testing.assert_allclose(
        (kept.toarray() - left.center) / left.scale, (X - scaling.center) / scaling.scale, rtol=1e-9, atol=1e-14
    )
    assert not kept[:, [4]].toarray().any()


@pytest.mark.filterwarnings("ignore:the fit did not converge")  # draws, and no leave to go on from them
def test_draws_from_csr_end_near_the_exact_optimum():
    X, y, groups = table(n=600)
    average = {"loss": "squared", "temperature": np.inf}
    exact = GroupDRORegressor(**average).fit(X, y, groups)
    drawn = GroupDRORegressor(method="rrosc-tracked", random_state=0, **average).fit(sp.csr_array(X), y, groups)
    assert drawn.n_iter_ > 1000 > exact.n_iter_
    assert distance(drawn.predict(X), exact.predict(X)) < 0.1


def test_a_csr_matrix_is_not_copied_where_the_optimum_is_exact():
    X, y, groups = table()
    csr = sp.csr_array(X[:, 1:4])
    model = GroupDRORegressor().fit(csr, y, groups)
    assert np.shares_memory(model._certifier.rows.X.data, csr.data)
