"""Checks that many tests share."""

from collections.abc import Callable

import numpy as np
from hypothesis import settings, strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

generated = settings(max_examples=50)  # the rest is in conftest.py


def vectors(size: int | st.SearchStrategy[int], bound: float = 10.0) -> st.SearchStrategy[NDArray[np.float64]]:
    """Generate vectors with entries in [-bound, bound]."""
    return arrays(np.float64, size, elements=st.floats(-bound, bound, allow_subnormal=False))


def check_gradient(
    function: Callable[[NDArray[np.float64]], float],
    gradient: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    point: NDArray[np.float64],
    rtol: float = 1e-6,
) -> None:
    """Compare `gradient` with central differences of `function`, relative to the larger of 1 and its norm."""
    given = np.asarray(gradient(point))
    differences = np.empty_like(point)
    for i in range(point.size):
        step = np.zeros_like(point)
        step[i] = np.finfo(float).eps ** (1 / 3) * max(1.0, abs(point[i]))
        ahead, behind = point + step, point - step
        differences[i] = (function(ahead) - function(behind)) / (ahead[i] - behind[i])
    assert given.shape == point.shape
    scale = max(1.0, float(np.linalg.norm(given)))
    np.testing.assert_allclose(given, differences, rtol=0.0, atol=rtol * scale)
