"""The temperature: chosen by what the worst group gains on rows held out, and by what the average pays."""

import dataclasses

import matplotlib as mpl
import numpy as np
import pytest
from scipy.optimize import minimize

import stoic
from stoic import GroupDROClassifier, GroupDRORegressor, GroupTradeoffDisplay
from stoic.estimators import temperatures
from stoic.estimators.protection import Yardstick
from stoic.estimators.rows import TrainingRows
from stoic.estimators.temperatures import TEMPERATURES, TemperaturePath, temperature_path

mpl.use("Agg")


def failed_group(seed=0, n=300, own_slope=2.0):
    """Return three groups of different noise, of which the calm last one has a slope of its own."""
    rng = np.random.default_rng(seed)
    X, groups = rng.standard_normal((3 * n, 2)), np.arange(3 * n) % 3
    y = X @ [1.0, 2.0] + own_slope * (groups == 2) * X[:, 0]
    return X, y + np.array([4.0, 2.0, 0.3])[groups] * rng.standard_t(3.0, 3 * n), groups


def path_of(worst, means, spread=0.1):
    """Return a path with one group, whose rows' errors differ between temperatures by about `spread`."""
    worst = np.asarray(worst, dtype=float)
    signs = np.where(np.arange(101) % 2, spread, -spread)
    changes = worst[:, None] + signs * np.arange(len(worst))[:, None]
    zeros = np.zeros(101, dtype=np.intp)
    return TemperaturePath(
        np.array(TEMPERATURES[: len(worst)]), worst[:, None], np.asarray(means), changes, zeros, np.arange(1)
    )


def test_the_lowest_level_is_taken_where_nothing_else_is_within_its_error():
    assert path_of([3.0, 2.0, 1.0, 1.5], [10.0, 10.01, 10.02, 10.03]).chosen(0.01) == 2


def test_a_level_within_a_standard_error_of_the_lowest_is_taken_if_it_is_nearer_to_the_average():
    near = path_of([3.0, 1.05, 1.0, 1.5], [10.0, 10.01, 10.02, 10.03], spread=1.0)  # the error is 1.0 / √100
    assert near.chosen(0.01) == 1
    assert path_of([3.0, 1.05, 1.0, 1.5], [10.0, 10.01, 10.02, 10.03], spread=0.1).chosen(0.01) == 2


def test_temperatures_behind_the_first_that_costs_too_much_are_not_taken():
    path = path_of([4.0, 3.0, 2.0, 1.0], [10.0, 10.05, 10.2, 10.05])
    assert path.chosen(0.01) == 1
    assert path.chosen(0.0) == 0
    assert path.chosen(np.inf) == 3
    np.testing.assert_allclose(path.costs, [0.0, 0.005, 0.02, 0.005])


def test_of_classes_the_share_of_wrong_ones_is_a_cost_too():
    path = path_of([3.0, 2.0, 1.0], [1.0, 1.0, 1.0])
    path = dataclasses.replace(path, wrong=np.array([0.2, 0.201, 0.21]))
    np.testing.assert_allclose(path.costs, [0.0, 0.005, 0.05])
    assert path.chosen(0.01) == 1


def test_the_errors_of_differences_are_infinite_where_one_row_tells():
    path = path_of([3.0, 1.0], [1.0, 1.0])
    assert dataclasses.replace(path, changes=path.changes[:, :1], codes=path.codes[:1]).chosen(np.inf) == 0
    two = dataclasses.replace(path, changes=np.array([[0.0, 0.0], [1.0, 3.0]]), codes=path.codes[:2])
    assert two._error(0, 1) == pytest.approx(1.0)  # 1/√(2 − 1)


def test_errors_of_the_average_are_those_of_models_that_have_not_seen_the_rows():
    X, y, groups = failed_group(n=40)
    labels, codes = np.unique(groups, return_inverse=True)
    rows, loss = TrainingRows(X, y, codes, labels, None, True), stoic.Huber(1.0)
    shares, w = np.full(3, 1.0 / 3.0), np.zeros(3)
    path = temperature_path(rows, loss, stoic.L2(0.1), w, Yardstick(1.0, 0.01), shares, np.random.default_rng(5))
    folds = temperatures._folds(rows, np.random.default_rng(5))
    A, errors = np.hstack([X, np.ones((120, 1))]), np.empty(120)
    for fold in range(5):
        train = folds != fold
        weight = np.where(train, shares[codes] / np.bincount(codes[train])[codes], 0.0)

        def objective(v, weight=weight):
            return weight @ loss.value(A @ v, y) + 0.05 * v[:2] @ v[:2]

        found = minimize(objective, w, method="BFGS", options={"gtol": 1e-9})  # an independent solver
        errors[~train] = np.abs(y - A @ found.x)[~train]
    expected = [errors[codes == i].mean() for i in range(3)]
    np.testing.assert_allclose(path.levels[0], expected, rtol=1e-3)
    assert path.means[0] == pytest.approx(np.mean(expected), rel=1e-3)


def test_regrets_of_square_loss_are_over_what_an_error_costs():
    X, y, groups = failed_group(n=60)
    labels, codes = np.unique(groups, return_inverse=True)
    rows, loss = TrainingRows(X, y, codes, labels, None, True), stoic.Squared()
    shares, scales, w = np.array([0.2, 0.3, 0.5]), np.array([0.5, 1.0, 4.0]), np.zeros(3)
    means = rows.inner(loss).value(w, rows.inner(loss).everything())[0]
    yard = Yardstick(1.0, 0.01, means - np.array([0.5, 1.0, 12.0]), scales, slope=7.0)
    path = temperature_path(rows, loss, stoic.L2(0.1), w, yard, shares, np.random.default_rng(0))
    np.testing.assert_allclose(path.levels[0], [1.0, 1.0, 3.0])
    moved = path.levels - path.levels[0]
    np.testing.assert_allclose(path.means - path.means[0], moved @ (shares * scales), atol=1e-9)
    for i in range(3):
        np.testing.assert_allclose(path.changes[:, path.codes == i].mean(axis=1), moved[:, i], atol=1e-9)
    assert path.temperatures.tolist() == [np.inf, 8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.1, 0.0]


def test_folds_leave_a_row_of_each_group_to_train_on_and_single_rows_are_never_held_out():
    codes = np.repeat([0, 1, 2, 3], [1, 2, 7, 100])
    rows = TrainingRows(np.zeros((110, 1)), np.zeros(110), codes, np.arange(4), None, True)
    folds = temperatures._folds(rows, np.random.default_rng(0))
    assert folds[0] == -1
    for fold in range(5):
        assert set(codes[folds != fold]) == {0, 1, 2, 3}
    assert np.bincount(folds[codes == 3]).tolist() == [20] * 5


@pytest.mark.parametrize("n_pairs", [0, 1, 2])
def test_where_hardly_a_row_can_be_held_out_the_average_is_taken(n_pairs):
    X, y, _ = failed_group(n=20)
    groups = np.r_[np.repeat(np.arange(n_pairs), 2), 100 + np.arange(60 - 2 * n_pairs)]
    for protect in ("loss", "regret"):
        model = GroupDRORegressor(protect=protect).fit(X, y, groups=groups)
        assert model.temperature_ == np.inf


def test_the_group_that_is_failed_gains_on_fresh_rows_and_the_cost_is_kept():
    X, y, groups = failed_group()
    fresh = failed_group(1, n=3000)
    fits = {
        "average": {"temperature": np.inf},
        "auto": {},
        "any price": {"max_cost": np.inf},
    }
    errors = {}
    for name, settings in fits.items():
        model = GroupDRORegressor(random_state=0, **settings).fit(X, y, groups=groups)
        errors[name] = [np.abs(fresh[1] - model.predict(fresh[0]))[fresh[2] == i].mean() for i in range(3)]
    assert errors["any price"][2] < 0.8 * errors["average"][2]
    assert errors["any price"][2] <= errors["auto"][2] < errors["average"][2]
    assert np.mean(errors["auto"]) < 1.03 * np.mean(errors["average"])


def test_where_chance_explains_all_regrets_nothing_is_to_be_chosen():
    # Each table has a regret that chance does not explain with probability 0.1: more than 4 of 12 with 0.004.
    models = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, groups = rng.standard_normal((300, 2)), rng.integers(0, 4, 300)
        y = X @ [1.0, 2.0] + rng.standard_t(3.0, 300)
        models.append(GroupDRORegressor(random_state=0).fit(X, y, groups=groups))
    calm = [model for model in models if model.temperature_ == np.inf]
    assert len(calm) >= 8
    assert all(model.path_ == [] for model in calm)


def test_the_path_has_a_record_for_each_temperature_and_one_is_chosen():
    X, y, groups = failed_group()
    model = GroupDRORegressor(random_state=0).fit(X, y, groups=np.array(["a", "b", "c"])[groups])
    assert [record["temperature"] for record in model.path_] == list(TEMPERATURES)
    assert [record["temperature"] for record in model.path_ if record["chosen"]] == [model.temperature_]
    assert model.path_[0]["cost"] == 0.0
    assert model.path_[0]["worst_group"] == "c"
    assert all(record["cost"] <= 0.01 for record in model.path_ if record["chosen"])
    fixed = GroupDRORegressor(random_state=0, temperature=1.0).fit(X, y, groups=groups)
    assert (fixed.temperature_, fixed.path_) == (1.0, [])


@pytest.mark.parametrize("loss", ["huber", "absolute", "quantile", "squared"])
def test_the_choice_does_not_depend_on_the_units_of_the_targets(loss):
    X, y, groups = failed_group()
    plain = GroupDRORegressor(loss, random_state=0).fit(X, y, groups=groups)
    moved = GroupDRORegressor(loss, random_state=0).fit(X, 1000.0 * y + 5.0, groups=groups)
    assert moved.temperature_ == plain.temperature_
    power = 2 if loss == "squared" else 1
    for record, other in zip(plain.path_, moved.path_, strict=True):
        assert other["mean_error"] == pytest.approx(1000.0**power * record["mean_error"], rel=1e-3)


def test_losses_are_judged_by_the_worst_error():
    X, y, groups = failed_group()
    model = GroupDRORegressor(protect="loss", random_state=0, max_cost=np.inf).fit(X, y, groups=groups)
    assert model.path_[0]["worst_group"] == 0  # the noisiest
    worst = np.abs(y - model.predict(X))[groups == 0].mean()
    chosen = next(record for record in model.path_ if record["chosen"])
    assert chosen["worst"] == pytest.approx(worst, rel=0.05)


def test_classes_have_a_path_too():
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((1500, 2)), np.arange(1500) % 3
    y = X[:, 0] + np.where(groups == 2, 3.0, 0.0) * X[:, 1] + rng.logistic(size=1500) > 0.0
    for target in (y, y + 1 * (X[:, 1] > 1.0)):
        model = GroupDROClassifier(random_state=0).fit(X, target, groups=groups)
        assert len(model.path_) == len(TEMPERATURES)
        assert model.path_[0]["worst_group"] == 2


def test_large_data_are_judged_on_a_sample_and_hard_ones_on_one_fold(monkeypatch):
    X, y, groups = failed_group(n=400)
    monkeypatch.setattr(temperatures, "_ENTRIES", 600.0)
    monkeypatch.setattr(temperatures, "_WORK", 1.0)
    spied = []
    part = TrainingRows.part

    def spy(rows, chosen):
        spied.append(int(np.count_nonzero(chosen)))
        return part(rows, chosen)

    monkeypatch.setattr(TrainingRows, "part", spy)
    labels, codes = np.unique(groups, return_inverse=True)
    rows, shares = TrainingRows(X, y, codes, labels, None, True), np.full(3, 1.0 / 3.0)
    yard = Yardstick(1.0, 0.01)
    path = temperature_path(
        rows, stoic.Huber(1.0), stoic.Zero(), np.zeros(3), yard, shares, np.random.default_rng(0)
    )
    assert spied == [300, 240]
    assert len(path.codes) == 60


def test_with_very_many_columns_the_temperature_is_one():
    X, y, groups = failed_group()
    wide = np.hstack([X, np.zeros((len(y), 1000))])
    model = GroupDRORegressor(random_state=0).fit(wide, y, groups=groups)
    assert (model.temperature_, model.path_) == (1.0, [])


def test_batches_keep_the_temperature_of_the_first():
    X, y, groups = failed_group()
    model = GroupDRORegressor(random_state=0).fit(X, y, groups=groups)
    kept = model.memory_.levels.temperature
    more = failed_group(2)
    assert model.partial_fit(more[0], more[1], groups=more[2]).memory_.levels.temperature == kept


def test_the_tradeoff_is_drawn_with_the_choice_marked():
    X, y, groups = failed_group()
    model = GroupDRORegressor(random_state=0).fit(X, y, groups=groups)
    display = GroupTradeoffDisplay.from_estimator(model)
    assert display.ax_.get_ylabel() == "largest regret of a group"
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [
        f"chosen: {model.temperature_:g}"
    ]
    assert {text.get_text() for text in display.ax_.texts} == {"average", *(f"{t:g}" for t in TEMPERATURES[1:])}
    fixed = GroupDRORegressor(temperature=1.0).fit(X, y, groups=groups)
    with pytest.raises(
        stoic.InvalidProblem, match='from a file, which keeps no path; fit with temperature="auto"'
    ):
        GroupTradeoffDisplay.from_estimator(fixed)


def test_the_tradeoff_of_losses_is_in_errors():
    X, y, groups = failed_group(n=60)
    model = GroupDRORegressor(protect="loss", temperature="auto", random_state=0).fit(X, y, groups=groups)
    assert GroupTradeoffDisplay.from_estimator(model).ax_.get_ylabel() == "largest mean error of a group"
    assert model.path_[0]["worst"] == pytest.approx(
        max(np.abs(y - model.predict(X))[groups == i].mean() for i in range(3)), rel=0.1
    )


def test_the_records_of_the_path_are_plain_values():
    X, y, groups = failed_group()
    names = np.array(["north", "south", "west"])[groups]
    model = GroupDRORegressor(random_state=0).fit(X, y, groups=names)
    assert {type(value) for record in model.path_ for value in record.values()} == {float, str, bool}


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"temperature": "cold"}, "temperature='cold'"), ({"max_cost": -0.1}, "max_cost=-0.1")],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(stoic.InvalidParameter, match=message):
        GroupDRORegressor(**settings).fit(np.eye(4), np.arange(4.0), groups=[0, 0, 1, 1])
