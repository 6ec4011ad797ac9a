"""Widths along one direction that hold for two moments, and the largest rise within them."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from stoic.certificate.confidence import Measured, Rise, factor, n_blocks


def test_the_width_says_that_the_sum_is_at_most_s_times_the_root_of_the_sum_of_squares():
    """Along one direction: the truth that is one width above the mean has S = sV, s = 1.3 √(2 log 1/δ)."""
    blocks, delta = np.random.default_rng(0).standard_t(2.5, (64, 1)), 0.01
    seen = Measured.of(blocks, delta)
    errors = seen.mean[0] + seen.widths[0] - blocks[:, 0]
    s = errors.sum() / math.sqrt(np.square(errors).sum())
    assert s == pytest.approx(1.3 * math.sqrt(2.0 * math.log(1.0 / delta)), rel=1e-9)


def test_the_inequality_behind_the_width_holds():
    """exp(x − x²/6) ≤ 1 + x + x²/3, and the bracket that it leads to is at most 1.3 where the clause says."""
    x = np.linspace(-50.0, 50.0, 200_001)
    assert (np.exp(x - x * x / 6.0) <= (1.0 + x + x * x / 3.0) * (1.0 + 1e-12)).all()
    ratio = np.linspace(math.sqrt(0.5), 7.0, 10_001)  # V/B
    assert (5.0 / 6.0 / ratio + ratio / 6.0).max() <= 1.3


@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-3, 1e-9, 1e-300])
def test_the_blocks_carry_delta(delta):
    k = n_blocks(delta)
    assert k >= 16.0 * math.log(1.0 / delta)
    assert factor(delta, k) < 1.2 * 1.3 * math.sqrt(2.0 * math.log(1.0 / delta))


@pytest.mark.parametrize(("k", "d"), [(64, 3), (5, 40)])
def test_the_rise_is_the_largest_value_over_x(k, d):
    """From above, and within 1 % of what SciPy finds from ten starts."""
    rng = np.random.default_rng(k)
    wide, v = rng.standard_normal((k, d)) / math.sqrt(k), rng.standard_normal(d)

    def fall(x):
        return 0.5 * x @ x - v @ x - np.linalg.norm(wide @ x)

    best = max(-scipy_minimize(fall, rng.standard_normal(d)).fun for _ in range(10))
    assert best <= Rise(wide)(v) * (1 + 1e-9) <= 1.01 * best
