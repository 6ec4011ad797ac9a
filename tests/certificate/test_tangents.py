"""Measured tangents: what the curvature of an outer function adds to them."""

import math

import numpy as np
import pytest

import stoic
from fresh_samples import Stream, certificate
from stoic.certificate.tangents import measured_tangent
from stoic.studies.confidence.laws import UNIT_NOISES


def test_the_error_of_the_outer_gradient_is_in_the_bound():
    """Values have noise, slopes have none. Were ∇f at a mean of samples taken for ∇f(g(w)), a third would fail.

    F(w) = τ log cosh(w/τ) + 50w² with its minimum at 0. More than 22 of 200 bounds below the gap have
    probability 3e-4 if δ = 0.05 holds.
    """
    temperature, w = 0.2, np.array([0.02])
    stream = Stream(UNIT_NOISES["gaussian"], [[1.0], [-1.0]], values=0.5)
    problem = stoic.Problem(stream, stoic.LogSumExp(temperature), stoic.L2(100.0))
    gap = temperature * math.log(math.cosh(w[0] / temperature)) + 50.0 * w[0] ** 2
    bounds = np.array([certificate(problem, w, seed=seed).bound for seed in range(200)])
    assert (bounds < gap).sum() <= 22
    assert np.median(bounds) < 10 * gap


@pytest.mark.parametrize("outer", [stoic.LogSumExp(5.0), stoic.LogSumExp(0.1), stoic.SmoothCVaR(0.7, 0.3)])
def test_an_outer_function_is_bent_no_more_than_the_tangent_says(outer):
    """At each corner of what the shift may be: f(y + s) − f(y) − ⟨∇f(y), s⟩ ≤ ½ Σ m s², and at most `flat`."""
    stream = Stream(UNIT_NOISES["gaussian"], [[0.0], [0.0]], values=1.0)
    problem, w = stoic.Problem(stream, outer, stoic.L2(1.0)), np.zeros(1)
    seen = measured_tangent(problem, w, draws=832, blocks=64, delta=0.05, rng=np.random.default_rng(0))
    rng = np.random.default_rng(0)
    y = stream.value(w, stream.draw(832 // 4, rng))[0]
    shift = np.mean([stream.value(w, stream.draw(9, rng))[0] for _ in range(64)], axis=0) - y
    np.testing.assert_allclose(seen.shift.mean, shift - outer.gradient(y) @ shift)
    corners = seen.shift.mean + seen.shift.widths * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    excess = np.array([outer.value(y + s) - outer.value(y) - outer.gradient(y) @ s for s in corners])
    for bend in seen.bends:
        assert (excess <= 0.5 * np.square(corners) @ bend).all()
        assert outer.temperature < 1.0 or (excess / (np.square(corners) @ bend)).max() > 0.48
    assert (excess <= seen.flat).all()


def test_slopes_of_a_quadratic_outer_function_have_no_bias():
    """Their mean is that over all pairs of two blocks, which is unbiased; that of plain block gradients is not."""
    inner, k = stoic.Moments(np.random.default_rng(0).standard_normal((300, 3)) + 1.0), 64
    problem, w = stoic.Problem(inner, stoic.MeanVariance(2.0), stoic.L2(1.0)), np.array([0.2, 0.5, 0.3])
    seen = measured_tangent(problem, w, draws=9 * k, blocks=k, delta=0.05, rng=np.random.default_rng(1))
    rng = np.random.default_rng(1)
    batches = [inner.draw(9, rng) for _ in range(k)]
    y, z = (np.concatenate([of(w, batch) for batch in batches]) for of in (inner.value, inner.jacobian))
    pairs = (np.outer(y[:, 0].sum() - y[:, 0], [1.0]) * z[:, 0]).sum(axis=0) / (k * (k - 1))
    expected = -z[:, 0].mean(axis=0) + 2.0 * (z[:, 1].mean(axis=0) - 2.0 * pairs)
    np.testing.assert_allclose(seen.slope.mean, expected, rtol=1e-9)
