"""Losses: values, derivatives, curvature, smoothing errors and safety at huge numbers."""

import numpy as np
import pytest

from certificate import test_conjugates
from engines import runs, test_kernels
from stoic import losses
from stoic.errors import InvalidParameter, InvalidProblem
from stoic.inners.named_losses import resolve_loss
from stoic.losses import Absolute, Huber, Logistic, Quantile, Squared

LOSSES = [
    Squared(),
    Huber(),
    Huber(0.3),
    Absolute(),
    Absolute(2.0),
    Quantile(),
    Quantile(0.9, 0.7),
    Logistic(),
]


def test_every_loss_is_an_example_wherever_losses_are_tested():
    for examples in (LOSSES, test_conjugates.LOSSES, test_kernels.LOSSES, runs.LOSSES.values()):
        assert {type(loss) for loss in examples} == set(losses.LOSSES.values())


PREDICTIONS = np.linspace(-5.0, 5.0, 401)


def targets_of(loss):
    return [-1.0, 1.0] if isinstance(loss, Logistic) else [-0.37, 0.0, 2.2]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_derivative_matches_central_differences(loss):
    h = 1e-6
    for y in targets_of(loss):
        slope = (loss.value(PREDICTIONS + h, y) - loss.value(PREDICTIONS - h, y)) / (2 * h)
        # The second derivative may jump, which costs at most h times the curvature.
        np.testing.assert_allclose(loss.derivative(PREDICTIONS, y), slope, atol=1e-8 + h * loss.curvature)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_second_derivative_is_the_slope_of_the_derivative_but_at_its_kinks(loss):
    h = 1e-6
    for y in targets_of(loss):
        t = PREDICTIONS + 0.00123  # no kink of these losses is within h of these
        slope = (loss.derivative(t + h, y) - loss.derivative(t - h, y)) / (2 * h)
        np.testing.assert_allclose(loss.second_derivative(t, y), slope, atol=1e-8)
        assert loss.second_derivative(np.array([-1e300, 1e300]), y).max() <= loss.curvature


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if hasattr(loss, "bound_curvature")], ids=repr)
def test_the_parabola_of_a_bound_lies_above_the_loss_and_a_flatter_one_does_not(loss):
    far = np.linspace(-50.0, 50.0, 40_001)
    for y in targets_of(loss):
        for t in (-4.0, -0.7, -0.2, 0.0, 0.1, 0.9, 3.0):
            rise = loss.value(far, y) - loss.value(t, y) - loss.derivative(t, y) * (far - t)
            bound = loss.bound_curvature(np.array([t]), y)[0]
            assert (rise <= 0.5 * bound * (far - t) ** 2 + 1e-12).all()
            assert (rise > 0.5 * 0.98 * bound * (far - t) ** 2 + 1e-12).any()
    huge = loss.bound_curvature(np.array([-1e300, 1e300]), 1.0)
    assert (huge >= 0.0).all()
    assert (huge <= 1e-250).all()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_curvature_is_the_least_bound_on_the_slope_of_the_derivative(loss):
    for y in targets_of(loss):
        t = np.concatenate([PREDICTIONS, y + np.linspace(-1e-3, 1e-3, 5)])
        t.sort()
        t = t[np.concatenate([[True], np.diff(t) > 1e-9])]
        slopes = np.diff(loss.derivative(t, y)) / np.diff(t)
        assert slopes.max() <= loss.curvature * (1 + 1e-6)
        assert slopes.min() >= -1e-9
        assert loss.curvature * 0.98 <= slopes.max()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_are_vectorized_float64_and_leave_their_arguments_alone(loss):
    t, y = np.array([[0.5, -1.0], [3.0, 0.0]]), np.array([[1.0, 1.0], [-1.0, -1.0]])
    t.flags.writeable = y.flags.writeable = False
    for answer in (loss.value(t, y), loss.derivative(t, y)):
        assert answer.shape == (2, 2)
        assert answer.dtype == np.float64
    assert loss.value(t, y)[1, 0] == loss.value(3.0, -1.0)


def test_the_squared_loss_has_no_factor_one_half():
    assert Squared().value(3.0, 1.0) == 4.0


def test_huber_equals_squared_within_its_threshold_and_grows_linearly_beyond():
    t = np.linspace(-2.0, 2.0, 41)
    np.testing.assert_allclose(Huber(2.0).value(t, 0.0), Squared().value(t, 0.0), rtol=1e-15)
    assert Huber(2.0).value(10.0, 0.0) == 2 * 2 * 10 - 4
    assert Huber(2.0).derivative(-1e9, 0.0) == -4.0


@pytest.mark.parametrize("s", [1e-3, 0.1, 2.0])
def test_the_smoothed_absolute_loss_lies_below_by_at_most_half_the_smoothing(s):
    gap = np.abs(PREDICTIONS) - Absolute(s).value(PREDICTIONS, 0.0)
    assert gap.min() >= -1e-15
    assert gap.max() == pytest.approx(s / 2, rel=1e-9)


@pytest.mark.parametrize(("level", "s"), [(0.5, 0.1), (0.9, 0.5), (0.2, 1.0)])
def test_the_smoothed_pinball_loss_lies_below_by_at_most_the_documented_error(level, s):
    residual = -PREDICTIONS
    pinball = np.maximum(level * residual, (level - 1) * residual)
    gap = pinball - Quantile(level, s).value(PREDICTIONS, 0.0)
    assert gap.min() >= -1e-15
    assert gap.max() == pytest.approx(max(level, 1 - level) ** 2 * s / 2, rel=1e-9)


def test_the_smoothed_pinball_loss_is_the_moreau_envelope():
    loss, s = Quantile(0.8, 0.5), 0.5
    v = np.linspace(-6.0, 6.0, 120_001)
    for r in (-2.0, -0.05, 0.0, 0.3, 3.0):
        envelope = np.min(np.maximum(0.8 * v, -0.2 * v) + (v - r) ** 2 / (2 * s))
        assert loss.value(0.0, r) == pytest.approx(envelope, abs=1e-8)


def test_the_median_is_half_the_absolute_loss():
    np.testing.assert_allclose(
        2 * Quantile(0.5, 0.4).value(PREDICTIONS, 0.3), Absolute(0.2).value(PREDICTIONS, 0.3), rtol=1e-13
    )


def test_the_constant_that_minimizes_a_quantile_loss_is_near_the_quantile():
    y = np.random.default_rng(0).standard_t(2.5, 4000)
    t = np.linspace(-4, 4, 1601)
    best = t[np.argmin([Quantile(0.9, 0.01).value(a, y).mean() for a in t])]
    assert best == pytest.approx(np.quantile(y, 0.9), abs=0.02)


def test_the_logistic_loss_matches_the_formula_where_that_is_safe():
    t = np.linspace(-20, 20, 81)
    for y in (-1.0, 1.0):
        np.testing.assert_allclose(Logistic().value(t, y), np.log1p(np.exp(-y * t)), rtol=1e-10)
        np.testing.assert_allclose(Logistic().derivative(t, y), -y / (1 + np.exp(y * t)), rtol=1e-12)


def test_the_logistic_loss_never_overflows_and_keeps_its_small_tail():
    t = np.array([-np.inf, -1e300, -800.0, 800.0, 1e300, np.inf])
    np.testing.assert_array_equal(Logistic().value(t, 1.0), [np.inf, 1e300, 800.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(Logistic().derivative(t, 1.0), [-1.0, -1.0, -1.0, 0.0, 0.0, 0.0])
    assert Logistic().derivative(100.0, 1.0) == pytest.approx(-np.exp(-100.0), rel=1e-12)


@pytest.mark.parametrize("loss", [Huber(), Absolute(), Quantile(0.7)], ids=repr)
def test_linear_losses_stay_finite_at_huge_residuals(loss):
    t = np.array([-1e300, 1e300])
    assert np.isfinite(loss.value(t, 0.0)).all()
    assert (np.abs(loss.derivative(t, 0.0)) <= 2.0).all()


def test_logistic_refuses_other_labels_and_says_how_to_convert():
    Logistic().check_target(np.array([-1.0, 1.0, 1.0]))
    with pytest.raises(InvalidProblem, match=r"y\[1\] = 0.*-1 and \+1.*2 \* y - 1"):
        Logistic().check_target(np.array([1.0, 0.0, 1.0]))


@pytest.mark.parametrize(
    ("make", "fragment"),
    [
        (lambda: Huber(0.0), "threshold=0.0"),
        (lambda: Huber(np.inf), "threshold=inf"),
        (lambda: Absolute(-1.0), "smoothing=-1.0"),
        (lambda: Quantile(level=1.0), "level=1.0"),
        (lambda: Quantile(smoothing="x"), "smoothing='x'"),
        (lambda: resolve_loss("sqaured"), "did you mean 'squared'"),
        (lambda: resolve_loss("Huber"), "did you mean 'huber'"),
        (lambda: resolve_loss("zzz"), "known are squared, huber, absolute, quantile, logistic"),
        (lambda: resolve_loss(Huber), r"Huber is a class.*Huber\(\.\.\.\)"),
        (lambda: resolve_loss(3), "loss=3 has no value and no derivative and no curvature"),
    ],
)
def test_wrong_settings_are_named(make, fragment):
    with pytest.raises(InvalidParameter, match=fragment):
        make()


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("squared", Squared()),
        ("huber", Huber()),
        ("absolute", Absolute()),
        ("quantile", Quantile()),
        ("logistic", Logistic()),
    ],
)
def test_names_stand_for_losses_with_default_settings(name, loss):
    assert resolve_loss(name) == loss


def test_a_loss_object_comes_back_as_it_is():
    loss = Huber(3.0)
    assert resolve_loss(loss) is loss


@pytest.mark.parametrize(
    ("loss", "ends"),
    [
        (Huber(0.5), [-0.5, 0.5]),
        (Absolute(0.5), [-0.5, 0.5]),
        (Quantile(0.25, 0.5), [-0.375, 0.125]),
    ],
    ids=repr,
)
def test_a_parabola_has_its_curvature_up_to_its_ends_and_lines_have_none(loss, ends):
    target, outside = np.array(ends), np.array(ends) * 1.001
    np.testing.assert_array_equal(loss.second_derivative(0.0, target), loss.curvature)
    np.testing.assert_array_equal(loss.second_derivative(0.0, outside), 0.0)
