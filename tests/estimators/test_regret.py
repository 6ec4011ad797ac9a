"""Regret: what the groups' own models gain is measured, and the model follows the group that it fails."""

import numpy as np
import pytest
from scipy.optimize import minimize

import stoic
from stoic import GroupDROClassifier, GroupDRORegressor
from stoic.estimators.own_models import own_models
from stoic.estimators.protection import RegretProtection
from stoic.estimators.rows import TrainingRows


def noisy_groups(seed=0, n=400, own_slopes=0.0):
    """Return five groups of growing t(2.1) noise, and a calm one whose slopes differ by `own_slopes`."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(6), n)
    X = rng.standard_normal((6 * n, 4))
    slopes = np.tile([1.0, -1.0, 0.5, 0.0], (6, 1))
    slopes[5] += own_slopes * np.array([-1.0, 1.0, 1.0, 1.0])
    noise = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 0.3])[groups] * rng.standard_t(2.1, 6 * n)
    return X, (X * slopes[groups]).sum(axis=1) + noise, groups


def rows_of(X, y, groups, **options):
    labels, codes = np.unique(groups, return_inverse=True)
    return TrainingRows(X, y, codes, labels, options.get("weight"), True, options.get("n_classes", 0))


def test_where_groups_differ_in_noise_only_the_fit_is_the_average_over_the_rows():
    X, y, groups = noisy_groups()
    model = GroupDRORegressor(protect="regret", random_state=0).fit(X, y, groups=groups)
    with pytest.warns(stoic.estimators.base.MissingGroupsWarning):
        average = GroupDRORegressor().fit(X, y)
    np.testing.assert_allclose(model.coef_, average.coef_, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(model.group_regrets_, 0.0, atol=1e-3 * model.group_losses_.max())
    np.testing.assert_allclose(model.group_weights_, 1.0 / 6.0, rtol=1e-3)


def test_the_group_that_the_shared_model_fails_gets_weight_and_a_lower_error():
    X, y, groups = noisy_groups(own_slopes=1.0)
    errors = {}
    for name, settings in {
        "average": {"protect": "regret", "temperature": np.inf},
        "loss": {"protect": "loss", "temperature": 1.0},
        "regret": {"protect": "regret", "temperature": 0.5},
    }.items():
        model = GroupDRORegressor(random_state=0, **settings).fit(X, y, groups=groups)
        fresh = noisy_groups(1, own_slopes=1.0)
        errors[name] = np.abs(fresh[1] - model.predict(fresh[0]))[fresh[2] == 5].mean()
    assert model.group_regrets_.argmax() == 5
    assert model.group_weights_.argmax() == 5
    assert errors["regret"] < 0.85 * errors["average"]
    assert errors["loss"] > errors["average"]


def test_the_gain_of_an_own_model_is_the_difference_of_the_risks():
    X, y, groups = noisy_groups(n=4000, own_slopes=1.0)
    rows, loss, w = rows_of(X, y, groups), stoic.Huber(2.0), np.array([1.0, -1.0, 0.5, 0.0, 0.0])
    found = own_models(rows, loss, w, np.random.default_rng(0))
    own = groups == 5
    best = minimize(lambda v: loss.value(X[own] @ v, y[own]).mean(), w[:4], method="BFGS")  # an independent solver
    gain = loss.value(X[own] @ w[:4], y[own]).mean() - best.fun
    assert found.gains[5] == pytest.approx(gain, rel=0.05)
    assert found.certain_gains[5] < found.gains[5]
    assert (found.certain_gains[:5] <= 0.01 * found.gains[5]).all()


def test_chance_is_no_regret_in_nine_of_ten_tables():
    # Each table shows a regret with probability 0.1 at most, so more than 9 of 30 with probability 0.0005.
    shown = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, groups = rng.standard_normal((600, 3)), rng.integers(0, 8, 600)
        y = X @ [1.0, 0.0, -1.0] + rng.standard_t(3.0, 600)
        rows, w = rows_of(X, y, groups), np.array([1.0, 0.0, -1.0, 0.0])
        shown += (own_models(rows, stoic.Huber(1.5), w, rng).certain_gains > 0.0).any()
    assert shown <= 9


def test_chance_is_no_regret_among_hundreds_of_small_groups_with_wild_labels():
    # Each table shows a regret with probability 0.1 at most, so more than 4 of 10 with probability 0.002.
    shown = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, groups = rng.standard_normal((3600, 3)), np.repeat(np.arange(300), 12)
        y = X @ [1.0, 0.0, -1.0] + rng.standard_t(2.1, 3600)
        rows, w = rows_of(X, y, groups), np.array([1.0, 0.0, -1.0, 0.0])
        shown += (own_models(rows, stoic.Huber(1.0), w, rng).certain_gains > 0.0).any()
    assert shown <= 4


def test_groups_are_fitted_in_batches_to_the_same_gains(monkeypatch):
    X, y, groups = noisy_groups(own_slopes=1.0)
    rows, loss, w = rows_of(X, y, groups), stoic.Huber(2.0), np.array([1.0, -1.0, 0.5, 0.0, 0.0])
    whole = own_models(rows, loss, w, np.random.default_rng(0))
    monkeypatch.setattr("stoic.estimators.own_models._MOST_HESSIANS", 30)  # one group at a time
    alone = own_models(rows, loss, w, np.random.default_rng(0))
    np.testing.assert_allclose(alone.gains[5], whole.gains[5], rtol=0.1)  # other folds
    assert alone.gains.argmax() == 5


@pytest.mark.parametrize("wild", [1e3, 1e6, 1e12])
def test_wild_rows_do_not_decide(wild):
    X, y, groups = noisy_groups(own_slopes=1.0)
    plain = GroupDRORegressor(protect="regret", random_state=0).fit(X, y, groups=groups)
    y = y.copy()
    y[[0, 500, 1000, 2100]] = wild, -wild, wild, wild
    model = GroupDRORegressor(protect="regret", random_state=0).fit(X, y, groups=groups)
    assert model.group_regrets_.argmax() == 5
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=0.05)


def test_groups_that_are_too_small_for_an_own_model_have_no_regret():
    X, y, groups = noisy_groups(own_slopes=1.0)
    groups = groups.copy()
    groups[-5:] = 6 + np.arange(5)
    model = GroupDRORegressor(protect="regret", random_state=0).fit(X, y, groups=groups)
    assert model.converged_
    average = GroupDRORegressor(protect="regret", temperature=np.inf, random_state=0).fit(X, y, groups=groups)
    np.testing.assert_allclose(average.group_regrets_[6:], 0.0, atol=1e-6)


def test_baselines_that_are_given_are_used_in_the_units_of_the_loss():
    X, y, groups = noisy_groups()
    labels = np.array(list("abcdef"))[groups]
    baseline = dict.fromkeys("abcdef", 100.0) | {"c": 1.0}
    model = GroupDRORegressor(protect="regret", baseline=baseline, temperature=0.1).fit(X, y, groups=labels)
    np.testing.assert_allclose(model.group_baselines_, [100.0, 100.0, 1.0, 100.0, 100.0, 100.0], rtol=1e-12)
    np.testing.assert_allclose(model.group_regrets_, model.group_losses_ - model.group_baselines_)
    assert model.group_weights_[2] > 0.99
    own = groups == 2
    alone = GroupDRORegressor(temperature=np.inf).fit(X[own], y[own], groups=labels[own])
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=0.1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"protect": "nobody"}, "protect='nobody'"),
        ({"protect": "regret", "baseline": {0: 1.0}}, "baseline has no number for group 1"),
        ({"baseline": [1.0, 1.0, 1.0]}, "baseline is of type list; give a mapping from groups to numbers"),
        ({"baseline": dict.fromkeys(range(6), 1.0) | {1: np.nan}}, r"baseline\[1\]=nan is not a number\."),
        ({"baseline": dict.fromkeys(range(6), 1.0) | {1: -np.inf}}, r"baseline\[1\]=-inf is not finite\."),
        ({"protect": "regret", "baseline": dict.fromkeys(range(6), "x")}, r"baseline\[0\]"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    X, y, groups = noisy_groups(n=20)
    with pytest.raises(stoic.InvalidParameter, match=message):
        GroupDRORegressor(**settings).fit(X, y, groups=groups)


@pytest.mark.parametrize("loss", ["huber", "squared", "absolute"])
def test_the_units_of_the_targets_do_not_matter(loss):
    X, y, groups = noisy_groups(own_slopes=1.0)
    y = np.clip(y, -30.0, 30.0)
    settings = {"loss": loss, "protect": "regret", "temperature": 0.5, "random_state": 0}
    plain = GroupDRORegressor(**settings).fit(X, y, groups=groups)
    moved = GroupDRORegressor(**settings).fit(X, 1000.0 * y + 7.0, groups=groups)
    np.testing.assert_allclose(moved.predict(X), 1000.0 * plain.predict(X) + 7.0, rtol=1e-3, atol=1.0)
    np.testing.assert_allclose(moved.group_weights_, plain.group_weights_, atol=1e-4)


def test_rows_that_are_repeated_are_rows_that_weigh_more():
    X, y, groups = noisy_groups(n=60, own_slopes=2.0)
    counts = np.random.default_rng(2).integers(1, 3, len(y)).astype(float)
    rows, loss, w = rows_of(X, y, groups, weight=counts), stoic.Huber(2.0), np.array([1.0, -1.0, 0.5, 0.0, 0.0])
    assert own_models(rows, loss, w, np.random.default_rng(0)).gains.argmax() == 5
    assert RegretProtection(1.0).shares(rows) == pytest.approx(np.bincount(groups, counts) / counts.sum())


def test_a_classifier_follows_the_group_that_it_fails():
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((3000, 3)), np.arange(3000) % 3
    slopes = np.where(groups[:, None] == 2, [-2.0, 1.0, 0.0], [2.0, 1.0, 0.0])
    y = (X * slopes).sum(axis=1) + np.array([0.5, 3.0, 0.5])[groups] * rng.logistic(size=3000) > 0.0
    model = GroupDROClassifier(protect="regret", temperature=0.5, random_state=0).fit(X, y, groups=groups)
    assert model.group_regrets_.argmax() == 2
    assert model.group_weights_.argmax() == 2
    three = np.digitize((X * slopes).sum(axis=1) + rng.logistic(size=3000), [-1.0, 1.0])
    shifted = np.where((groups == 2) & (rng.random(3000) < 0.7), 0, three)
    model = GroupDROClassifier(protect="regret", temperature=0.5, random_state=0).fit(X, shifted, groups=groups)
    assert model.group_regrets_.argmax() == 2


def test_partial_fit_keeps_the_baselines_and_knows_no_regret_of_new_groups(tmp_path):
    X, y, groups = noisy_groups(own_slopes=1.0)
    model = GroupDRORegressor(protect="regret", random_state=0).fit(X, y, groups=groups)
    before, weights = model.group_baselines_.copy(), model.group_weights_.copy()
    stoic.save_model(model, tmp_path / "model.stoic")
    again = stoic.load_model(tmp_path / "model.stoic")
    for one in (model, again):
        np.testing.assert_array_equal(one.group_weights_, weights)
        np.testing.assert_array_equal(one.group_baselines_, before)
        one.partial_fit(X[:50], y[:50], groups=np.full(50, 9))
        np.testing.assert_array_equal(one.group_baselines_[:6], before)
        assert one.group_baselines_[6] == pytest.approx(one.group_losses_[6])
        assert one.group_weights_.sum() == pytest.approx(1.0)


def test_wide_rows_have_corrections_of_level_and_slope():
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((900, 250)), np.arange(900) % 3
    w = rng.standard_normal(251) / 10.0
    y = np.where(groups == 1, 3.0, 1.0) * (X @ w[:-1]) + rng.standard_normal(900)
    found = own_models(rows_of(X, y, groups), stoic.Squared(), w, rng)
    assert found.certain_gains[1] > 1.0
    assert (found.certain_gains[[0, 2]] == 0.0).all()


def test_many_groups_take_linear_time_and_memory():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(5000), 12)
    X = rng.standard_normal((len(groups), 3))
    y = X.sum(axis=1) + rng.standard_normal(len(groups))
    found = own_models(rows_of(X, y, groups), stoic.Huber(1.5), np.array([1.0, 1.0, 1.0, 0.0]), rng)
    assert found.gains.shape == (5000,)
    assert (found.certain_gains > 0.0).mean() < 0.01
