import copy
import math
import pickle
import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import logsumexp

from checks import check_gradient, generated, vectors
from stoic.errors import InvalidParameter
from stoic.outers import Linear, LogSumExp, MeanVariance, SmoothCVaR

PRIOR = (0.1, 0.2, 0.3, 0.4)
BASELINE = (0.5, -2.0, 0.0, 1.5)
FOR_FOUR = [
    Linear(),
    Linear([1.0, -2.0, 0.0, 3.0]),
    LogSumExp(0.7),
    LogSumExp(2.0, prior=PRIOR),
    LogSumExp(1.0, prior=[0.0, 1.0, 1.0, 0.0]),
    SmoothCVaR(0.5, 1.3),
    SmoothCVaR(0.6, 0.9),
    SmoothCVaR(1.0, 1.0),
    LogSumExp(0.7, prior=PRIOR, baseline=BASELINE),
    SmoothCVaR(0.5, 1.3, baseline=BASELINE),
    LogSumExp(0.7, prior=PRIOR, baseline=BASELINE, scale=[0.5, 2.0, 1.0, 3.0]),
]
RISKS = [f for f in FOR_FOUR if not isinstance(f, Linear) and getattr(f, "scale", None) is None]


@pytest.mark.parametrize("outer", FOR_FOUR, ids=str)
@generated
@given(u=vectors(4))
def test_gradients_match_finite_differences(outer, u):
    check_gradient(outer.value, outer.gradient, u, rtol=1e-5)


@generated
@given(u=vectors(2))
def test_the_gradient_of_mean_variance_matches_finite_differences(u):
    outer = MeanVariance(0.8)
    check_gradient(outer.value, outer.gradient, u)


@pytest.mark.parametrize("outer", FOR_FOUR, ids=str)
@generated
@given(u=vectors(4), v=vectors(4))
def test_values_are_convex(outer, u, v):
    above_the_tangent = outer.value(v) - outer.value(u) - outer.gradient(u) @ (v - u)
    assert above_the_tangent >= -1e-12 * (1.0 + np.abs(u).sum() + np.abs(v).sum())


@pytest.mark.parametrize("outer", FOR_FOUR, ids=str)
@generated
@given(u=vectors(4), v=vectors(4))
def test_lipschitz_and_smoothness_bound_what_they_say(outer, u, v):
    distance = np.linalg.norm(u - v)
    assert abs(outer.value(u) - outer.value(v)) <= outer.lipschitz * distance + 1e-11
    assert np.linalg.norm(outer.gradient(u) - outer.gradient(v)) <= outer.smoothness * distance + 1e-14


@generated
@given(u=vectors(2), v=vectors(2))
def test_the_smoothness_of_mean_variance_bounds_its_gradient(u, v):
    outer = MeanVariance(0.8)
    change = np.linalg.norm(outer.gradient(u) - outer.gradient(v))
    assert change <= outer.smoothness * np.linalg.norm(u - v) + 1e-14
    assert outer.lipschitz == math.inf


@pytest.mark.parametrize("temperature", [1e-3, 1.0, 1e5])
@pytest.mark.parametrize("p", [2, 5])
@pytest.mark.parametrize("make", [LogSumExp, lambda tau: SmoothCVaR(0.3, tau)])
def test_the_smoothness_is_attained_where_two_entries_share_the_weight(make, p, temperature):
    outer, u, v = make(temperature), np.full(p, -100.0 * temperature), np.full(p, -100.0 * temperature)
    u[:2], v[:2] = np.array([1e-3, -1e-3]) * temperature, np.array([-1e-3, 1e-3]) * temperature
    ratio = np.linalg.norm(outer.gradient(u) - outer.gradient(v)) / np.linalg.norm(u - v)
    assert 0.999 * outer.smoothness <= ratio <= 1.000001 * outer.smoothness


@pytest.mark.parametrize(
    "outer",
    [
        Linear([0.2, 0.5, 0.3]),
        LogSumExp(0.7),
        LogSumExp(2.0, [0.1, 0.6, 0.3]),
        LogSumExp(0.7, baseline=[1.0, 0.0, -1.0]),
        SmoothCVaR(0.9, 0.6),  # two entries at the cap
        SmoothCVaR(0.5, 0.6),  # one
        SmoothCVaR(0.34, 5.0),  # none
        SmoothCVaR(0.5, 0.6, baseline=[1.0, 0.0, -1.0]),
        LogSumExp(0.7, [0.1, 0.6, 0.3], [1.0, 0.0, -1.0], scale=[0.5, 2.0, 1.0]),
    ],
    ids=repr,
)
def test_the_hessian_matches_differences_of_the_gradient(outer):
    u, h = np.array([0.3, -1.2, 0.9]), 1e-6
    columns = [(outer.gradient(u + h * e) - outer.gradient(u - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(outer.hessian(u), np.stack(columns, axis=1), atol=1e-9)
    v = np.array([[1.0, -2.0], [0.5, 0.0], [3.0, 1.0]])
    np.testing.assert_allclose(outer.hessian_product(u, v), outer.hessian(u) @ v, atol=1e-14)
    np.testing.assert_allclose(outer.hessian_product(u, v[:, 0]), outer.hessian(u) @ v[:, 0], atol=1e-14)


@pytest.mark.parametrize("outer", [Linear(), LogSumExp(1.0), SmoothCVaR(0.5, 1.0)], ids=str)
def test_a_product_with_the_hessian_of_very_many_entries_needs_no_square_matrix(outer):
    u = np.linspace(0.0, 1.0, 200_000)
    assert outer.hessian_product(u, np.ones(u.size)) == pytest.approx(np.zeros(u.size), abs=1e-12)


@generated
@given(u=vectors(4, bound=50.0))
def test_scales_are_units_of_the_entries(u):
    scale = np.array([0.5, 2.0, 1.0, 3.0])
    plain, scaled = LogSumExp(0.7, PRIOR), LogSumExp(0.7, PRIOR, BASELINE, scale)
    assert scaled.value(u) == pytest.approx(plain.value((u - BASELINE) / scale), abs=1e-12)
    np.testing.assert_allclose(scaled.gradient(u) * scale, plain.gradient((u - BASELINE) / scale), atol=1e-14)


@pytest.mark.parametrize("scale", [[1.0, 0.0], [1.0, -1.0], [], [np.nan, 1.0], "units"])
def test_wrong_scales_are_refused(scale):
    with pytest.raises(InvalidParameter, match="scale"):
        LogSumExp(1.0, scale=scale)


def test_the_hessian_of_mean_variance_matches_differences_of_the_gradient():
    outer, u, h = MeanVariance(0.7), np.array([0.3, 1.2]), 1e-6
    columns = [(outer.gradient(u + h * e) - outer.gradient(u - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(outer.hessian(u), np.stack(columns, axis=1), atol=1e-9)
    with pytest.raises(InvalidParameter, match="two values"):
        outer.hessian(np.ones(3))


@pytest.mark.parametrize("level", [0.2, 0.5, 0.7, 1.0])
@generated
@given(u=vectors(5, bound=3.0))
def test_the_hessian_of_smooth_cvar_is_positive_and_bounded_by_its_smoothness_even_at_ties(level, u):
    outer = SmoothCVaR(level, 0.5)
    eigenvalues = np.linalg.eigvalsh(outer.hessian(u.round()))
    assert eigenvalues.min() >= -1e-14
    assert eigenvalues.max() <= outer.smoothness + 1e-14


BASED = [
    (LogSumExp(0.7), LogSumExp(0.7, baseline=BASELINE)),
    (LogSumExp(2.0, PRIOR), LogSumExp(2.0, PRIOR, BASELINE)),
    (LogSumExp(1.0, [0.0, 1.0, 1.0, 0.0]), LogSumExp(1.0, [0.0, 1.0, 1.0, 0.0], BASELINE)),
    (SmoothCVaR(0.6, 0.9), SmoothCVaR(0.6, 0.9, BASELINE)),
]


@pytest.mark.parametrize(("plain", "based"), BASED, ids=str)
@generated
@given(u=vectors(4))
def test_a_baseline_is_taken_off_the_losses(plain, based, u):
    above = u - np.array(BASELINE)
    assert based.value(u) == plain.value(above)
    np.testing.assert_array_equal(based.gradient(u), plain.gradient(above))
    np.testing.assert_array_equal(based.hessian(u), plain.hessian(above))


@pytest.mark.parametrize(("plain", "based"), BASED, ids=str)
def test_a_baseline_is_part_of_what_an_outer_function_is(plain, based):
    same = replace(plain, baseline=np.array(BASELINE))
    assert based == same
    assert based != plain
    assert hash(based) == hash(same)
    assert "baseline=(0.5, -2.0, 0.0, 1.5)" in repr(based)
    again = pickle.loads(pickle.dumps(based))  # noqa: S301 - our own
    assert again == based
    assert again.value(np.arange(4.0)) == based.value(np.arange(4.0))


def test_a_baseline_that_takes_a_loss_beyond_floats_gives_infinity_without_a_warning():
    assert LogSumExp(1.0, baseline=[-1e308, 0.0]).value(np.array([1.5e308, 0.0])) == math.inf
    assert SmoothCVaR(0.5, 1.0, [-1e308, 0.0]).gradient(np.array([1.5e308, 0.0])).tolist() == [1.0, 0.0]


def test_the_hessian_of_log_sum_exp_changes_at_most_as_fast_as_hessian_lipschitz_says():
    outer = LogSumExp(0.5)

    def hessian(u):
        q = outer.gradient(u)
        return (np.diag(q) - np.outer(q, q)) / outer.temperature

    def rate(u, v):
        return np.linalg.norm(hessian(u) - hessian(v), 2) / np.linalg.norm(u - v)

    rng = np.random.default_rng(0)
    pairs = [(u, u + 0.01 * rng.normal(size=3)) for u in rng.normal(size=(300, 3))]
    assert max(rate(u, v) for u, v in pairs) <= 1.0001 * outer.hessian_lipschitz
    gaps = np.linspace(0.0, 2.0, 401)
    along = np.array([0.5, -0.5])
    fastest = max(rate(t * along, (t + 1e-4) * along) for t in gaps)
    assert fastest == pytest.approx(outer.hessian_lipschitz, rel=1e-3)


@pytest.mark.parametrize("outer", RISKS, ids=str)
@generated
@given(u=vectors(4, bound=1e6))
def test_risk_gradients_are_probabilities(outer, u):
    q = outer.gradient(u)
    assert q.min() >= 0.0
    assert q.sum() == pytest.approx(1.0, abs=1e-14)


@generated
@given(u=vectors(st.integers(1, 8), bound=1e3), temperature=st.floats(1e-2, 1e3))
def test_log_sum_exp_agrees_with_scipy(u, temperature):
    prior = np.arange(1.0, u.size + 1)
    by_scipy = temperature * logsumexp(u / temperature, b=prior / prior.sum())
    outer = LogSumExp(temperature, prior=prior)
    assert outer.value(u) == pytest.approx(by_scipy, rel=1e-12, abs=1e-12 * temperature)
    by_scipy = temperature * logsumexp(u / temperature, b=1.0 / u.size)
    assert LogSumExp(temperature).value(u) == pytest.approx(by_scipy, rel=1e-12, abs=1e-12 * temperature)


def test_log_sum_exp_keeps_its_digits_at_a_huge_temperature():
    u = np.array([0.1, 0.7, 0.3])
    by_hand = u.mean() + u.var() / 2e8  # the next term is below 1e-17
    assert LogSumExp(1e8).value(u) == pytest.approx(by_hand, rel=1e-15)
    assert SmoothCVaR(0.5, 1e8).value(u) == pytest.approx(by_hand, rel=1e-15)


def test_a_prior_is_scaled_and_leaves_out_groups_of_weight_zero():
    outer = LogSumExp(1.0, prior=[0.0, 2.0, 2.0])
    assert outer.prior == (0.0, 0.5, 0.5)
    assert outer.value(np.array([1e9, 3.0, 3.0])) == pytest.approx(3.0)
    assert outer.gradient(np.array([np.inf, 3.0, 3.0])).tolist() == [0.0, 0.5, 0.5]


def _cvar_by_cvxpy(u, level, temperature):
    q = cp.Variable(u.size)
    kl = cp.sum(cp.rel_entr(q, np.full(u.size, 1.0 / u.size)))
    limits = [cp.sum(q) == 1, q >= 0, q <= 1.0 / (level * u.size)]
    problem = cp.Problem(cp.Maximize(u @ q - temperature * kl), limits)
    problem.solve(solver=cp.CLARABEL)
    return problem.value, q.value


@pytest.mark.parametrize("seed", range(12))
def test_smooth_cvar_agrees_with_cvxpy(seed):
    rng = np.random.default_rng(seed)
    p, level, temperature = rng.integers(2, 9), rng.uniform(0.1, 0.95), 10 ** rng.uniform(-1, 1)
    u = rng.normal(scale=2.0, size=p).round(1)  # rounded, so that ties occur
    value, q = _cvar_by_cvxpy(u, level, temperature)
    outer = SmoothCVaR(level, temperature)
    assert outer.value(u) == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(outer.gradient(u), q, atol=1e-4)


@generated
@given(u=vectors(st.integers(1, 9), bound=50.0), level=st.floats(0.01, 1.0), temperature=st.floats(1e-2, 1e2))
def test_smooth_cvar_attains_its_value_within_the_cap(u, level, temperature):
    outer = SmoothCVaR(level, temperature)
    q = outer.gradient(u)
    assert q.max() <= max(1.0 / (level * u.size), 1.0 / u.size) * (1.0 + 1e-12)
    positive = q[q > 0.0]
    attained = q @ u - temperature * (positive @ np.log(positive * u.size))
    assert outer.value(u) == pytest.approx(attained, rel=1e-10, abs=1e-10 * (1.0 + temperature))


@generated
@given(u=vectors(5), temperature=st.floats(1e-2, 1e2))
def test_smooth_cvar_of_level_one_is_the_average_and_of_a_small_level_log_sum_exp(u, temperature):
    average, soft_maximum = SmoothCVaR(1.0, temperature), SmoothCVaR(0.2, temperature)
    np.testing.assert_allclose(average.gradient(u), 0.2, rtol=1e-14)
    assert average.value(u) == pytest.approx(u.mean(), abs=1e-12)
    assert average.smoothness == 0.0
    np.testing.assert_allclose(soft_maximum.gradient(u), LogSumExp(temperature).gradient(u), atol=1e-14)
    assert soft_maximum.value(u) == pytest.approx(LogSumExp(temperature).value(u), abs=1e-12)


def test_smooth_cvar_is_the_mean_of_the_worst_when_cold():
    u = np.array([4.0, 1.0, 3.0, 2.0, 0.0])
    assert SmoothCVaR(0.4, 1e-9).value(u) == pytest.approx(3.5)
    np.testing.assert_allclose(SmoothCVaR(0.5, 1e-9).gradient(u), [0.4, 0.0, 0.4, 0.2, 0.0], atol=1e-15)


EXTREME_LOSSES = [
    [0.0, 1.0, 2.0],
    [1e300, -1e300, 0.0],
    [1.7e308, -1.7e308, 1.7e308],
    [1e12, 1e12 + 1.0, 0.0],
    [-1e300, -1e300, -1e300],
    [1e-300, 0.0, -1e-300],
    [5.0, 5.0, 5.0],
]


@pytest.mark.parametrize("temperature", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("u", EXTREME_LOSSES, ids=str)
@pytest.mark.parametrize(
    "make", [LogSumExp, lambda tau: LogSumExp(tau, [1, 2, 0]), lambda tau: SmoothCVaR(0.5, tau)]
)
def test_extreme_losses_and_temperatures_stay_finite(make, u, temperature):
    outer, u = make(temperature), np.array(u)
    value, q = outer.value(u), outer.gradient(u)
    assert u.min() <= value <= u.max() + 1e-6 * abs(u.max())
    assert q.min() >= 0.0
    assert q.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("make", [LogSumExp, lambda tau: SmoothCVaR(0.25, tau)])
def test_infinite_losses_share_all_the_weight(make):
    outer, u = make(1.0), np.array([np.inf, 1e300, np.inf, 0.0])
    assert outer.value(u) == math.inf
    assert outer.gradient(u).tolist() == [0.5, 0.0, 0.5, 0.0]
    everywhere = np.full(4, -np.inf)
    assert outer.value(everywhere) == -math.inf
    assert outer.gradient(everywhere).tolist() == [0.25] * 4


def test_an_infinite_loss_follows_the_prior_and_the_cap():
    u = np.array([np.inf, np.inf, 0.0, 0.0])
    np.testing.assert_allclose(LogSumExp(1.0, PRIOR).gradient(u), [1 / 3, 2 / 3, 0.0, 0.0])
    np.testing.assert_allclose(SmoothCVaR(0.75, 1.0).gradient(u), [1 / 3, 1 / 3, 1 / 6, 1 / 6])


@pytest.mark.parametrize("outer", FOR_FOUR, ids=str)
def test_nan_is_not_hidden(outer):
    u = np.array([1.0, np.nan, 2.0, 3.0])
    assert math.isnan(outer.value(u))
    assert isinstance(outer, Linear) or np.isnan(outer.gradient(u)).any()


@pytest.mark.parametrize("outer", FOR_FOUR, ids=str)
def test_outers_read_what_they_may_not_write(outer):
    u = np.array([1.0, 4.0, 2.0, 3.0])
    u.flags.writeable = False
    before = u.copy()
    gradient = outer.gradient(u)
    gradient += 1.0  # a result is the caller's: the next one must not see this
    assert outer.value(u) == copy.deepcopy(outer).value(u)
    np.testing.assert_array_equal(outer.gradient(u) + 1.0, gradient)
    np.testing.assert_array_equal(u, before)


def test_the_average_does_not_overflow():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Linear().value(np.full(4, 1.5e308)) == 1.5e308
        assert Linear([2.0, 2.0]).value(np.full(2, 1.5e308)) == math.inf


def test_linear_weights_give_the_sum_and_its_lipschitz_constant():
    outer = Linear(weights=[3.0, -4.0])
    assert outer.value(np.array([2.0, 1.0])) == 2.0
    assert outer.lipschitz == 5.0
    assert outer.smoothness == 0.0
    assert outer == Linear(np.array([3, -4]))


def test_mean_variance_of_a_sample_is_its_mean_and_variance():
    returns = np.array([0.1, -0.3, 0.5, 0.2])
    moments = np.array([returns.mean(), (returns**2).mean()])
    assert MeanVariance(2.0).value(moments) == pytest.approx(-returns.mean() + 2.0 * returns.var())
    assert MeanVariance(0.0).smoothness == 0.0
    assert MeanVariance(0.0).lipschitz == 1.0


BAD_SETTINGS = [
    (LogSumExp, {"temperature": 0.0}),
    (LogSumExp, {"temperature": -1.0}),
    (LogSumExp, {"temperature": math.nan}),
    (LogSumExp, {"temperature": math.inf}),
    (LogSumExp, {"temperature": "hot"}),
    (LogSumExp, {"temperature": 1.0, "prior": []}),
    (LogSumExp, {"temperature": 1.0, "prior": [0.0, 0.0]}),
    (LogSumExp, {"temperature": 1.0, "prior": [-1.0, 2.0]}),
    (LogSumExp, {"temperature": 1.0, "prior": [math.nan, 1.0]}),
    (LogSumExp, {"temperature": 1.0, "prior": [[0.5, 0.5]]}),
    (LogSumExp, {"temperature": 1.0, "prior": "ab"}),
    (LogSumExp, {"temperature": 1.0, "baseline": [math.inf, 1.0]}),
    (LogSumExp, {"temperature": 1.0, "baseline": 2.0}),
    (SmoothCVaR, {"level": 0.5, "temperature": 1.0, "baseline": [math.nan]}),
    (SmoothCVaR, {"level": 0.5, "temperature": 1.0, "baseline": []}),
    (SmoothCVaR, {"level": 0.0, "temperature": 1.0}),
    (SmoothCVaR, {"level": 1.1, "temperature": 1.0}),
    (SmoothCVaR, {"level": math.nan, "temperature": 1.0}),
    (SmoothCVaR, {"level": 0.5, "temperature": 0.0}),
    (MeanVariance, {"weight": -1.0}),
    (MeanVariance, {"weight": math.inf}),
    (MeanVariance, {"weight": math.nan}),
    (Linear, {"weights": [math.inf]}),
    (Linear, {"weights": []}),
    (Linear, {"weights": 3.0}),
    (Linear, {"weights": [[1.0], [1.0, 2.0]]}),
]


@pytest.mark.parametrize(("kind", "settings"), BAD_SETTINGS, ids=str)
def test_bad_settings_are_refused_by_name(kind, settings):
    with pytest.raises(InvalidParameter, match="|".join(settings)):
        kind(**settings)


@pytest.mark.parametrize(
    "outer",
    [
        Linear([1.0, 2.0]),
        LogSumExp(1.0, [1.0, 2.0]),
        LogSumExp(1.0, baseline=[1.0, 2.0]),
        SmoothCVaR(0.5, 1.0, baseline=[1.0, 2.0]),
        MeanVariance(1.0),
    ],
    ids=str,
)
def test_the_wrong_number_of_values_is_refused(outer):
    for call in (outer.value, outer.gradient):
        with pytest.raises(InvalidParameter, match="3"):
            call(np.zeros(3))


def test_huge_priors_do_not_overflow():
    assert LogSumExp(1.0, prior=[1e308, 1e308]).prior == (0.5, 0.5)
