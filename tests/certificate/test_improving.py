"""Better points by proximal gradients: the first guess at the curvature, and what the steps cost."""

import numpy as np
import pytest

import stoic
from stoic.certificate.improving import _first_smoothness, improving

CURVATURES = np.array([1.0, 30.0, 1000.0])


def problem_of(scale, calls):
    """A parabola with an outer function of one's own, which Newton's method does not take."""
    rows = np.diag(np.sqrt(scale * CURVATURES))

    def value(w, samples):
        calls.append(1)
        return 1.5 * np.square(samples @ (w - 1.0))[:, None]

    def jacobian(w, samples):
        return 3.0 * ((samples @ (w - 1.0))[:, None] * samples)[:, None, :]

    return stoic.Problem(stoic.FunctionInner(value, jacobian, (1, 3), data=rows), stoic.Linear())


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("entry", [0, 2])
def test_the_first_guess_is_the_curvature_along_the_gradient(scale, entry):
    start = np.ones(3) + np.eye(3)[entry]
    guess = _first_smoothness(problem_of(scale, []), start)
    assert guess == pytest.approx(scale * CURVATURES[entry], rel=1e-4)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_a_step_tries_few_lengths(scale):
    calls = []
    problem = problem_of(scale, calls)
    points = list(improving(problem, np.zeros(3)))
    assert problem.objective(points[-1]) <= 1e-12 * problem.objective(np.zeros(3))
    assert len(calls) <= 5 * 20 * len(points)  # four in a step whose first length is right
