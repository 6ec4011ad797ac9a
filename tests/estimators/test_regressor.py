"""GroupDRORegressor: what it minimizes, what it does not depend on, and how it is used."""

import itertools
import math
import pickle
import tracemalloc

import cvxpy as cp
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import QuantileRegressor
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import stoic
from stoic import GroupDRORegressor
from stoic.estimators import rows as training_rows, scales
from stoic.estimators.early_stopping import EarlyStopping

N, D = 600, 4
BY_LOSS = {"protect": "loss", "temperature": 4.0}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((N, D)) * [1.0, 5.0, 0.1, 2.0] + 3.0, np.arange(N) % 3
    models = np.array([[1.0, 0.5, 2.0, 0.0]] * 3) + 0.3 * rng.standard_normal((3, D))
    y = (X * models[groups]).sum(axis=1) + (1 + groups) * rng.standard_t(2.0, N)
    return X, y, np.array(["a", "b", "c"])[groups]


def fitted(data, **settings):
    X, y, groups = data
    return GroupDRORegressor(**settings).fit(X, y, groups=groups)


# --- what is minimized ---


def test_the_average_of_groups_is_weighted_least_squares(data):
    X, y, groups = data
    X, y, groups = X[:500], y[:500], np.where(np.arange(500) < 400, "a", groups[:500])  # of different sizes
    model = GroupDRORegressor("squared", penalty="none", protect="loss", temperature=np.inf)
    model.fit(X, y, groups=groups)
    counts = pd.Series(groups).map(pd.Series(groups).value_counts()).to_numpy()
    root = 1.0 / np.sqrt(counts)
    best = np.linalg.lstsq(np.c_[X, np.ones(500)] * root[:, None], y * root, rcond=None)[0]
    np.testing.assert_allclose(np.r_[model.coef_, model.intercept_], best, rtol=1e-8)
    np.testing.assert_allclose(model.group_weights_, 1 / 3)


def test_a_temperature_of_zero_is_the_worst_group(data):
    X, y, groups = data
    model = fitted(data, loss="squared", penalty="none", protect="loss", temperature=0.0)
    w, b = cp.Variable(D), cp.Variable()
    risks = [cp.sum_squares(X[groups == g] @ w + b - y[groups == g]) / (groups == g).sum() for g in "abc"]
    best = cp.Problem(cp.Minimize(cp.maximum(*risks))).solve(cp.CLARABEL)
    assert best * (1 - 1e-6) <= model.group_losses_.max() <= 1.01 * best


def test_a_temperature_between_lies_between(data):
    models = [fitted(data, loss="squared", protect="loss", temperature=t) for t in (0.0, 1.0, 4.0, np.inf)]
    worst = [model.group_losses_.max() for model in models]
    assert worst == sorted(worst)
    assert worst[0] < worst[-1]


@pytest.mark.parametrize("temperature", [2.0, 4.0, 8.0])
def test_group_weights_differ_by_about_one_over_the_temperature(temperature):
    rng = np.random.default_rng(1)
    X, groups = rng.standard_normal((6000, 2)), np.arange(6000) % 3
    y = X.sum(axis=1) + (1 + groups) * rng.standard_normal(6000)
    model = GroupDRORegressor(protect="loss", temperature=temperature).fit(X, y, groups=groups)
    assert model.group_weights_.std() * 3 == pytest.approx(1 / temperature, rel=0.1)


def test_differences_that_chance_explains_hardly_move_the_weights():
    rng = np.random.default_rng(2)
    X, groups = rng.standard_normal((900, 2)), np.arange(900) % 3
    y = X.sum(axis=1) + rng.standard_t(1.5, 900)
    model = GroupDRORegressor(protect="loss", temperature=1.0).fit(X, y, groups=groups)
    assert model.group_losses_.std() > 0.1 * model.group_losses_.mean()
    assert model.group_weights_.std() * 3 < 0.3


def test_kl_group_dro_with_huber_loss_agrees_with_cvxpy(data):
    X, y, groups = data
    model = fitted(data, standardize=False, fit_intercept=False, alpha=0.01, **BY_LOSS)
    problem = model._certifier.problem
    unit, h, tau = np.abs(y), problem.inner.loss.threshold, problem.outer.temperature
    unit = 1.4826 * np.sort(unit)[(N - 1) // 2]  # without an intercept: about zero
    w = cp.Variable(D)
    risks = [cp.sum(cp.huber((X @ w - y / unit)[groups == g], h)) / (groups == g).sum() for g in "abc"]
    smooth = tau * cp.log_sum_exp(cp.hstack(risks) / tau) + 0.005 * cp.sum_squares(w)
    cp.Problem(cp.Minimize(smooth)).solve(cp.CLARABEL)
    np.testing.assert_allclose(model.coef_, unit * w.value, rtol=1e-4)


def test_the_huber_scale_is_that_of_the_residuals_of_the_average_fit(data):
    X, y, _ = data
    model = fitted(data, temperature=np.inf)
    threshold = model._certifier.problem.inner.loss.threshold
    residuals, unit = y - model.predict(X), model.memory_.frame.target.unit
    deviation = 1.4826 * np.median(np.abs(residuals - np.median(residuals)))
    assert threshold * unit == pytest.approx(deviation, rel=0.02)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_quantiles_agree_with_linear_programming(data, level):
    X, y, _ = data
    with pytest.warns(stoic.MissingGroupsWarning, match="groups=None: all rows are one group"):
        ours = GroupDRORegressor("quantile", quantile=level, penalty="none").fit(X, y)
    theirs = QuantileRegressor(quantile=level, alpha=0.0).fit(X, y)
    losses = [
        np.mean(np.maximum(level * r, (level - 1) * r)) for r in (y - ours.predict(X), y - theirs.predict(X))
    ]
    assert losses[1] <= losses[0] <= 1.003 * losses[1]


def test_the_lasso_leaves_out_what_does_not_matter(data):
    X, y, groups = data
    noisy = np.hstack([X, np.random.default_rng(1).standard_normal((N, 20))])
    model = GroupDRORegressor(penalty="l1").fit(noisy, y, groups=groups)
    assert np.count_nonzero(model.coef_[D:]) <= 4
    assert np.count_nonzero(model.coef_[[0, 1]]) == 2


# --- what does not matter ---


@pytest.mark.filterwarnings("ignore:the fit did not converge")  # draws, and no leave to go on from them
@pytest.mark.parametrize("settings", [{}, {"loss": "absolute", "penalty": "l1"}, {"method": "rrosc-tracked"}])
@pytest.mark.slow
def test_units_of_columns_and_targets_do_not_matter(data, settings):
    X, y, groups = data
    one = fitted(data, random_state=0, **settings)
    other = GroupDRORegressor(random_state=0, **settings).fit(
        X * 1024.0 - 2.0**20, y / 4096.0 + 8.0, groups=groups
    )
    np.testing.assert_allclose(4096.0 * (other.predict(X * 1024.0 - 2.0**20) - 8.0), one.predict(X), rtol=1e-5)
    np.testing.assert_allclose(other.group_weights_, one.group_weights_, rtol=1e-5)


def test_on_small_data_the_seed_matters_for_folds_alone_and_none_gives_the_same_each_time(data):
    models = [fitted(data, random_state=seed, **BY_LOSS) for seed in (0, 1)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    np.testing.assert_array_equal(fitted(data).coef_, fitted(data).coef_)
    assert (fitted(data, random_state=0).group_baselines_ != fitted(data, random_state=1).group_baselines_).any()


def test_the_order_of_rows_and_names_of_groups_do_not_matter(data):
    X, y, groups = data
    order = np.random.default_rng(2).permutation(N)
    names = np.array([{"a": 7, "b": 3, "c": 5}[g] for g in groups])
    other = GroupDRORegressor(**BY_LOSS).fit(X[order], y[order], groups=names[order])
    np.testing.assert_allclose(other.coef_, fitted(data, **BY_LOSS).coef_, rtol=1e-8)
    assert other.groups_.tolist() == [3, 5, 7]


@pytest.mark.parametrize("standardize", [True, False])
def test_a_csr_matrix_gives_what_a_dense_one_does(data, standardize):
    X, y, groups = data
    sparse = X * (np.random.default_rng(3).random(X.shape) < 0.3)
    settings = {"standardize": standardize, "penalty": "none"}
    dense, csr = (
        GroupDRORegressor(**settings).fit(kind(sparse), y, groups=groups) for kind in (np.asarray, sp.csr_array)
    )
    np.testing.assert_allclose(csr.coef_, dense.coef_, rtol=1e-6)
    assert csr.intercept_ == pytest.approx(dense.intercept_, rel=1e-6)


@pytest.mark.slow
def test_data_frames_give_what_arrays_do_and_names_are_kept(data):
    X, y, groups = data
    names = ["w", "x", "y", "z"]
    for frame, column, label in (
        (pd.DataFrame(X, columns=names), pd.Series(y), pd.Series(groups, dtype="category")),
        (pl.DataFrame(X, schema=names), pl.Series(y), pl.Series(groups)),
    ):
        model = GroupDRORegressor().fit(frame, column, groups=label)
        np.testing.assert_allclose(model.coef_, fitted(data).coef_, rtol=1e-12)
        assert model.feature_names_in_.tolist() == names
        np.testing.assert_allclose(model.predict(frame), fitted(data).predict(X), rtol=1e-12)


def test_single_precision_is_kept(data):
    X, y, groups = data
    model = GroupDRORegressor().fit(X.astype(np.float32), y, groups=groups)
    assert model.coef_.dtype == model.intercept_.dtype == model.predict(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(model.coef_, fitted(data).coef_, rtol=1e-3)


# --- how it is used ---


@pytest.mark.filterwarnings("ignore:the fit did not converge")  # draws, and no leave to go on from them
@pytest.mark.slow
def test_draws_come_near_the_exact_optimum(data):
    exact, drawn = fitted(data, **BY_LOSS), fitted(data, method="rrosc-tracked", random_state=0, **BY_LOSS)
    np.testing.assert_allclose(drawn.predict(data[0]), exact.predict(data[0]), atol=0.3)
    assert drawn.n_samples_drawn_ > 10 * N
    assert set(drawn.truncation_) == {"y", "z"}


@pytest.mark.filterwarnings("ignore:the fit did not converge")  # draws, and no leave to go on from them
@pytest.mark.slow
def test_budget_and_epochs_bound_the_rows_drawn(data):
    assert fitted(data, method="rrosc-tracked", budget=20_000).n_samples_drawn_ <= 20_000
    assert fitted(data, method="rrosc-tracked", max_epochs=30).n_samples_drawn_ <= 30 * N


@pytest.mark.slow
def test_metadata_routing_hands_groups_to_the_fit(data):
    X, y, groups = data
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(GroupDRORegressor(), {"temperature": [1.0, np.inf]}, cv=GroupKFold(3))
        search.fit(X, y, groups=groups)
        assert search.best_estimator_.groups_.tolist() == ["a", "b", "c"]
        scores = cross_val_score(GroupDRORegressor(), X, y, params={"groups": groups})
        assert len(scores) == 5


def test_it_works_in_a_pipeline_with_pandas_output(data):
    X, y, groups = data
    pipeline = make_pipeline(StandardScaler(), GroupDRORegressor()).set_output(transform="pandas")
    pipeline.fit(pd.DataFrame(X, columns=list("abcd")), y, groupdroregressor__groups=groups)
    assert pipeline[-1].feature_names_in_.tolist() == list("abcd")


def test_a_clone_is_not_fitted_and_a_pickle_predicts_the_same(data):
    model = fitted(data, random_state=0)
    assert not hasattr(clone(model), "coef_")
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(again.predict(data[0]), model.predict(data[0]))
    with pytest.raises(AttributeError, match="certificate_ needs the rows of the fit"):
        _ = again.certificate_
    assert len(pickle.dumps(model)) < 20_000


@pytest.mark.filterwarnings("ignore:the fit did not converge")  # draws, and no leave to go on from them
def test_the_certificate_is_in_the_units_of_the_loss(data):
    X, y, groups = data
    model = fitted(data)
    assert model.certificate_.route == "duality"
    assert 0.0 <= model.certificate_.bound < 1e-12 * model.group_losses_.mean()
    rough = fitted(data, method="rrosc-tracked", budget=3000, random_state=0)
    scaled = GroupDRORegressor(method="rrosc-tracked", budget=3000, random_state=0).fit(
        X, 1024.0 * y, groups=groups
    )
    assert scaled.certificate_.bound == pytest.approx(1024.0**2 * rough.certificate_.bound, rel=1e-6)


def test_a_warm_start_goes_on_from_the_last_fit(data):
    X, y, groups = data
    model = GroupDRORegressor(temperature=np.inf, warm_start=True).fit(X, y, groups=groups)
    first = model.n_iter_
    assert model.fit(X, y, groups=groups).n_iter_ < first


def test_callbacks_see_records_and_may_stop_the_fit(data):
    seen = []

    def stop(record):
        seen.append(record)
        if len(seen) == 2:
            raise StopIteration

    model = fitted(data, callbacks=[stop])
    assert len(seen) == 2 == len(model.history_)
    assert not model.converged_


def test_ctrl_c_keeps_the_fit_so_far(data):
    def interrupt(_record):
        raise KeyboardInterrupt

    model = GroupDRORegressor(callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        model.fit(data[0], data[1], groups=data[2])
    assert np.isfinite(model.predict(data[0])).all()


@pytest.mark.filterwarnings("ignore:the fit did not converge")  # draws, and no leave to go on from them
@pytest.mark.slow
def test_the_history_counts_on_from_phase_to_phase(data):
    history = pd.DataFrame(fitted(data, method="rrosc-tracked").history_)
    assert history["samples"].is_monotonic_increasing
    assert history["phase"].unique().tolist() == [0, 1]


def test_the_history_follows_the_objective_in_the_units_of_the_loss(data):
    model = fitted(data, loss="squared", penalty="none", protect="loss", temperature=np.inf)
    assert model.history_[-1]["objective"] == pytest.approx(model.group_losses_.mean(), rel=1e-9)
    curve = [record["objective"] for record in fitted(data, loss="squared").history_ if record["phase"] == 0]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in itertools.pairwise(curve))


def test_early_stopping_keeps_the_best_weights(data):
    X, y, groups = data
    rng = np.random.default_rng(4)
    wide = np.hstack([X, rng.standard_normal((N, 200))])
    settings = {"method": "rrosc-tracked", "budget": 400_000, "alpha": 0.0, "random_state": 0, **BY_LOSS}
    stopped = GroupDRORegressor(early_stopping=True, **settings).fit(wide, y, groups=groups)
    assert not stopped.converged_  # it does not warn either: to stop early was asked for
    assert stopped.n_samples_drawn_ < 300_000
    losses = [record["validation_loss"] for record in stopped.history_ if "validation_loss" in record]
    assert min(losses) < losses[-1]


@pytest.mark.filterwarnings("ignore:the fit did not converge")  # draws, and no leave to go on from them
@pytest.mark.slow
def test_early_stopping_watches_the_loss_that_is_minimized_on_rows_that_count(data, monkeypatch):
    """Its threshold is that of the residuals, a thousandth of the targets'."""
    X, _, groups = data
    y = X @ np.arange(1.0, X.shape[1] + 1) + 1e-3 * np.random.default_rng(5).standard_normal(N)
    weight, lone = np.ones(N), groups.astype(object)
    weight[::7], lone[1] = 0.0, "alone"  # has no row to hold out
    seen, observe = [], EarlyStopping.observe

    def look(stopping, w, loss):
        seen.append((loss, stopping.rows))
        return observe(stopping, w, loss)

    monkeypatch.setattr(EarlyStopping, "observe", look)
    settings = {"method": "rrosc-tracked", "budget": 100_000, "random_state": 0}
    model = GroupDRORegressor(early_stopping=True, **settings).fit(X, y, groups=lone, sample_weight=weight)
    assert {loss for loss, _ in seen} == {model.memory_.loss}
    held_out = seen[0][1]
    assert held_out.weight.min() == 1.0
    assert "alone" not in held_out.labels[held_out.codes]


def test_a_fit_that_runs_out_of_budget_warns(data):
    X, y, groups = data
    with pytest.warns(ConvergenceWarning, match=r"duality gap.* times the objective at the start, and tol=0.0001"):
        model = GroupDRORegressor(method=stoic.Newton(n_steps=1)).fit(X, y, groups=groups)
    assert not model.converged_


def gap_over_start(model, data):
    """Return the gap to the exact optimum over the objective at w = 0, all on the scales of the fit."""
    problem = model._certifier.problem
    best = stoic.minimize(problem, "newton", budget=200 * N).w
    at = problem.objective
    return (at(model._certifier.w) - at(best)) / at(np.zeros(problem.dimension))


@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_many_rows_are_solved_until_the_gap_is_small_enough(data, monkeypatch, tol):
    X, y, groups = data
    exact = GroupDRORegressor().fit(X, y, groups=groups)
    monkeypatch.setattr(training_rows, "_SMALL", 1.0)
    model = GroupDRORegressor(tol=tol).fit(X, y, groups=groups)
    assert model.converged_
    assert model.n_iter_ < exact.n_iter_
    assert gap_over_start(model, data) <= tol
    assert model.history_[-1]["duality_gap"] > 0.0


def test_a_log_line_says_which_way_was_taken(data, caplog):
    caplog.set_level("INFO", logger="stoic")
    fitted(data)
    assert "exact, by passes over" in caplog.text
    assert "the data are in memory" in caplog.text
    caplog.clear()
    fitted(data, method="newton")
    assert "as method says" in caplog.text


@pytest.mark.parametrize("rows", [slice(None), slice(0, 60)])
@pytest.mark.parametrize("loss", ["huber", "absolute"])
def test_the_scale_is_that_of_the_residuals_of_the_average(data, rows, loss):
    X, y, groups = (one[rows] for one in data)
    model = GroupDRORegressor(loss, temperature=np.inf, protect="loss", epsilon=1.0).fit(X, y, groups=groups)
    residuals = y - model.predict(X)
    residuals = residuals - np.sort(residuals)[math.ceil(len(y) / 2) - 1]
    scale = 1.4826 * np.sort(np.abs(residuals))[math.ceil(len(y) / 2) - 1] / model.memory_.frame.target.unit
    own = model.memory_.loss
    assert scale == pytest.approx(own.threshold if loss == "huber" else 10.0 * own.smoothing, rel=1e-6)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_large_array_is_left_as_it_is_and_gives_the_same_model(data, monkeypatch, kind):
    X, y, groups = data[0].astype(kind), *data[1:]
    copied = GroupDRORegressor().fit(X, y, groups=groups)
    monkeypatch.setattr(scales, "_LARGE_ARRAY", 0)
    left = GroupDRORegressor().fit(X, y, groups=groups)
    assert np.shares_memory(left._certifier.rows.X, X)
    assert not np.shares_memory(copied._certifier.rows.X, X)
    np.testing.assert_allclose(left.coef_, copied.coef_, rtol=1e-8 if kind is np.float64 else 1e-4)
    assert left.temperature_ == copied.temperature_
    far = (X + 1e6).astype(kind)  # centered after the sums, digits would be lost
    assert not np.shares_memory(GroupDRORegressor().fit(far, y, groups=groups)._certifier.rows.X, far)


@pytest.mark.filterwarnings("error")
def test_a_fit_that_its_callback_ends_has_not_converged_and_does_not_warn(data):
    def stop(record):
        raise StopIteration

    assert not fitted(data, callbacks=[stop], method=stoic.Newton(n_steps=2)).converged_


@pytest.mark.filterwarnings("ignore:the fit did not converge")  # draws, and no leave to go on from them
def test_square_loss_is_solved_exactly_for_ten_times_the_work(data, monkeypatch):
    X, y, groups = data
    monkeypatch.setattr(training_rows, "_SMALL", N * D * D / 5.0)
    drawn, exact = (
        GroupDRORegressor(loss, budget=10_000).fit(X, y, groups=groups) for loss in ("huber", "squared")
    )
    assert exact._certifier.is_exact
    assert not drawn._certifier.is_exact


@pytest.mark.filterwarnings("ignore:the fit did not converge")  # draws, and no leave to go on from them
def test_sparse_rows_are_never_filled_in():
    """A fit takes at most 28 vectors as long as a row beside the rows; three center and scale them."""
    d, n = 200_000, 2000
    rng = np.random.default_rng(6)
    columns, ends = rng.integers(0, d, 20 * n), np.arange(0, 20 * n + 1, 20)
    X = sp.csr_array((rng.standard_normal(20 * n), columns.astype(np.int32), ends.astype(np.int32)), (n, d))
    y, groups = rng.standard_t(2.5, n), np.arange(n) % 6
    few = {"max_epochs": 30, "random_state": 0, **BY_LOSS}
    GroupDRORegressor(**few).fit(X[:500], y[:500], groups=groups[:500])  # kernels
    tracemalloc.start()
    GroupDRORegressor(**few).fit(X, y, groups=groups)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 28 * 8 * d


@pytest.mark.filterwarnings("ignore:the fit did not converge")  # draws, and no leave to go on from them
@pytest.mark.parametrize(
    ("penalty", "kind"),
    [
        ("l1", sp.csr_array),
        ("elasticnet", np.asarray),
        pytest.param("l1", np.asarray, marks=pytest.mark.every),
        pytest.param("elasticnet", sp.csr_array, marks=pytest.mark.every),
    ],
)
@pytest.mark.slow
def test_an_l1_penalty_makes_zeros_by_draws_too(data, penalty, kind):
    """About those of the exact optimum, and none where the penalty is L2."""
    X, y, groups = data
    noise = np.random.default_rng(8).standard_normal((N, 30))
    wide = kind(np.hstack([X, noise]))
    settings = {"alpha": 0.1, "l1_ratio": 0.9, "random_state": 0, "standardize": True, **BY_LOSS}
    exact = GroupDRORegressor(penalty=penalty, **settings).fit(wide, y, groups=groups)
    drawn = GroupDRORegressor(penalty=penalty, method="rrosc-tracked", budget=100_000, **settings)
    drawn.fit(wide, y, groups=groups)
    assert np.count_nonzero(exact.coef_) < 25
    assert ((exact.coef_ == 0.0) != (drawn.coef_ == 0.0)).sum() <= 4
    drawn.set_params(penalty="l2").fit(wide, y, groups=groups)
    assert np.count_nonzero(drawn.coef_) == drawn.coef_.size


# --- odd data ---


def test_a_constant_target_is_predicted(data):
    X, _, groups = data
    model = GroupDRORegressor().fit(X, np.full(N, 7.0), groups=groups)
    np.testing.assert_allclose(model.predict(X), 7.0)


def test_mostly_constant_targets_and_a_group_of_one_row_are_fitted(data):
    X, _, groups = data
    y = np.where(np.arange(N) % 10 == 0, X[:, 0], 0.0)
    labels = ["alone", *groups[1:]]
    model = GroupDRORegressor().fit(X, y, groups=labels)
    assert np.isfinite(model.predict(X)).all()
    assert "alone" in model.groups_


def test_more_columns_than_rows_are_fitted():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((50, 2000))
    model = GroupDRORegressor().fit(X, X[:, 0] + 0.1 * rng.standard_normal(50), groups=np.arange(50) % 2)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "cubic"}, "loss='cubic' is not one of 'squared'"),
        ({"penalty": "l3"}, "penalty='l3' is not one of 'none'"),
        ({"alpha": -1.0}, "alpha=-1.0 is not a number >= 0"),
        ({"temperature": -1.0}, "temperature=-1.0"),
        ({"temperature": np.nan}, "temperature=nan"),
        ({"temperature": "Auto"}, "temperature='Auto' is neither 'auto' nor a number >= 0"),
        ({"quantile": 1.0}, "quantile=1.0 is not strictly between"),
        ({"epsilon": 0.0}, "epsilon=0.0 is not a positive"),
        ({"method": "newtonn"}, "method='newtonn' is not one of"),
        ({"standardize": "yes"}, "standardize='yes' is not one of 'auto', True, False"),
        ({"budget": 0}, "budget=0 is not a whole number >= 1"),
        ({"max_epochs": 0}, "max_epochs=0 is not a positive"),
        ({"tol": 0.0}, "tol=0.0 is not a positive"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(data, settings, message):
    with pytest.raises(stoic.InvalidParameter, match=message):
        fitted(data, **settings)


def test_groups_that_do_not_fit_are_refused(data):
    X, y, groups = data
    with pytest.raises(stoic.InvalidProblem, match="groups has 599 entries, but X has 600 rows"):
        GroupDRORegressor().fit(X, y, groups=groups[1:])
