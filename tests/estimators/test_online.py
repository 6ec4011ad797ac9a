"""partial_fit: batches, groups that come and go, and what it forgets."""

import numpy as np
import pytest

import stoic
from stoic import GroupDROClassifier, GroupDRORegressor

N, D = 3000, 4


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((N, D)) * [1.0, 3.0, 0.5, 1.0], np.array(["a", "b", "c"])[np.arange(N) % 3]
    y = 5.0 + X @ [1.0, 0.5, -2.0, 0.0] + (1 + np.arange(N) % 3) * rng.standard_t(2.5, N)
    return X, y, groups


def in_batches(model, X, y, groups, n_batches, **more):
    for part in np.array_split(np.arange(len(y)), n_batches):
        model.partial_fit(X[part], y[part], groups=groups[part], **more)
    return model


@pytest.mark.filterwarnings("ignore::stoic.MissingGroupsWarning")
def test_least_squares_on_scaled_columns_in_batches_is_that_of_all_rows():
    rng = np.random.default_rng(1)
    X = np.linalg.qr(rng.standard_normal((100, 3)) - 0.0)[0]
    X = np.tile(X - X.mean(axis=0), (4, 1))  # four batches with the same columns
    X = X @ np.linalg.inv(np.linalg.cholesky(X.T @ X / 400)).T  # of mean 0 and covariance I
    y = X @ [1.0, 2.0, 3.0] + rng.standard_normal(400)
    model = GroupDRORegressor("squared", penalty="none")
    for part in np.array_split(np.arange(400), 4):
        model.partial_fit(X[part], y[part])
    best = np.linalg.lstsq(np.c_[X, np.ones(400)], y, rcond=None)[0]
    np.testing.assert_allclose(np.r_[model.coef_, model.intercept_], best, rtol=1e-6)


@pytest.mark.parametrize("n_batches", [10, 50])
def test_batches_come_near_the_fit_of_all_rows(data, n_batches):
    X, y, groups = data
    whole = GroupDRORegressor().fit(X, y, groups=groups)
    parts = in_batches(GroupDRORegressor(), X, y, groups, n_batches)
    first = GroupDRORegressor().fit(X[: N // n_batches], y[: N // n_batches], groups=groups[: N // n_batches])
    scale = np.r_[X.std(axis=0), 1.0]
    far, near = (
        np.linalg.norm((np.r_[model.coef_, model.intercept_] - np.r_[whole.coef_, whole.intercept_]) * scale)
        for model in (first, parts)
    )
    assert near < 0.35 * far
    np.testing.assert_allclose(parts.group_weights_, whole.group_weights_, atol=0.1)


def test_rows_before_count_as_many_as_they_were(data):
    X, y, groups = data
    model = GroupDRORegressor().fit(X[:2900], y[:2900], groups=groups[:2900])
    before = np.r_[model.coef_, model.intercept_]
    model.partial_fit(X[2900:], y[2900:] + 100.0, groups=groups[2900:])
    assert np.abs(np.r_[model.coef_, model.intercept_] - before).max() < 1.0


def test_new_groups_join_and_absent_ones_stay(data):
    X, y, groups = data
    rows = groups != "b"
    model = GroupDRORegressor().fit(X[rows], y[rows], groups=groups[rows])
    assert model.groups_.tolist() == ["a", "c"]
    model.partial_fit(X[~rows], y[~rows], groups=groups[~rows])
    assert model.groups_.tolist() == ["a", "b", "c"]
    assert model.group_weights_.sum() == pytest.approx(1.0)
    assert model.group_losses_[0] < model.group_losses_[1] < model.group_losses_[2]


def test_one_group_at_first_has_a_temperature_later(data):
    X, y, groups = data
    order = np.argsort(groups, kind="stable")
    model = in_batches(GroupDRORegressor(protect="loss"), X[order], y[order], groups[order], 3)
    assert model.groups_.tolist() == ["a", "b", "c"]
    assert model.group_weights_[2] > model.group_weights_[0]


def test_counts_go_on_and_the_certificate_is_gone(data):
    X, y, groups = data
    model = GroupDRORegressor().fit(X[:1000], y[:1000], groups=groups[:1000])
    steps, drawn = model.n_iter_, model.n_samples_drawn_
    model.partial_fit(X[1000:], y[1000:], groups=groups[1000:])
    assert model.n_iter_ > steps
    assert model.n_samples_drawn_ > drawn
    with pytest.raises(AttributeError, match="fitted in parts"):
        _ = model.certificate_


@pytest.mark.filterwarnings("ignore:the fit did not converge")  # draws, and no leave to go on from them
@pytest.mark.slow
def test_batches_may_be_drawn_from(data):
    X, y, groups = data
    exact = in_batches(GroupDRORegressor(), X, y, groups, 5)
    few = {"budget": 5000, "random_state": 0}  # a batch
    drawn = in_batches(GroupDRORegressor(method="rrosc-tracked", **few), X, y, groups, 5)
    np.testing.assert_allclose(drawn.predict(X), exact.predict(X), atol=0.5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_classifier_learns_in_batches(data, n_classes):
    X, y, groups = data
    labels = np.digitize(y, [5.0] if n_classes == 2 else [3.0, 7.0])
    whole = GroupDROClassifier().fit(X, labels, groups=groups)
    parts = in_batches(GroupDROClassifier(), X, labels, groups, 10, classes=np.arange(n_classes))
    assert np.abs(parts.predict_proba(X) - whole.predict_proba(X)).max() < 0.1


def test_a_classifier_is_told_its_classes_first(data):
    X, y, groups = data
    model, labels = GroupDROClassifier(), np.sign(y)
    with pytest.raises(stoic.InvalidParameter, match="classes=None at the first call"):
        model.partial_fit(X, labels, groups=groups)
    model.partial_fit(X, labels, classes=[-1, 1], groups=groups)
    with pytest.raises(stoic.InvalidProblem, match="y has the class"):
        model.partial_fit(X, labels + 1, groups=groups)
    with pytest.raises(stoic.InvalidParameter, match="differ from those of the first call"):
        model.partial_fit(X, labels, classes=[0, 1], groups=groups)


def test_columns_must_be_those_of_the_first_call(data):
    X, y, groups = data
    model = GroupDRORegressor().fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="X has 3 features"):
        model.partial_fit(X[:, :3], y, groups=groups)


def test_groups_of_mixed_kinds_join(data):
    X, y, groups = data
    kinds = np.where(groups == "a", 7, groups.astype(object))
    model = GroupDRORegressor().fit(X, y, groups=groups)
    model.partial_fit(X, y, groups=kinds)
    assert model.groups_.tolist() == [7, "a", "b", "c"]
    np.testing.assert_array_equal(model.memory_.counts, [N / 3, N / 3, 2 * N / 3, 2 * N / 3])
    numbers = GroupDRORegressor().fit(X, y, groups=np.arange(N) % 2)
    assert numbers.partial_fit(X, y, groups=np.arange(N) % 3).groups_.dtype.kind == "i"
