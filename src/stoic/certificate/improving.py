"""Better and better points, by Newton's method or proximal gradients over all data; they tighten bounds."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from stoic.certificate.duality import has_conjugate
from stoic.errors import IncompatibleParts, InvalidProblem
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solvers.newton import Newton

_NEWTON_STEPS, _MOST_OUTPUTS = 40, 2000
_GRADIENT_STEPS, _BETWEEN = 600, 20
_MOST_DOUBLINGS = 100


def improving(problem: Problem, w: Vector) -> Iterator[Vector]:
    """Yield w, moved into the domain of r, then better points: by Newton's method, else by proximal gradients.

    A constraint allows errors of 1e-9; its projection, which is its prox of step 0, does not.
    """
    if has_conjugate(problem.regularizer):
        w = np.asarray(problem.regularizer.prox(w, 0.0))
    yield w
    with np.errstate(all="ignore"):
        try:
            yield from _by_newton(problem, w) if _takes_newton(problem) else _by_gradients(problem, w)
        except InvalidProblem:  # a function of the user's own is not finite at a point that was tried
            return


def _takes_newton(problem: Problem) -> bool:
    try:
        Newton().check(problem)
    except IncompatibleParts:
        return False
    return problem.inner.shape[0] <= _MOST_OUTPUTS


def _by_newton(problem: Problem, w: Vector) -> Iterator[Vector]:
    solver, rng = Newton(n_steps=_NEWTON_STEPS), Generator(np.random.PCG64(0))  # which it does not use
    state = solver.init(problem, w, rng)
    while not solver.finished(state):
        state, _ = solver.step(problem, state, rng)
        if not np.isfinite(state.w).all():
            return
        yield state.w


def _by_gradients(problem: Problem, w: Vector) -> Iterator[Vector]:
    """Accelerated proximal gradients with backtracking, started again where F rises (O'Donoghue, Candès 2015)."""
    ahead, momentum, L, value = w, 1.0, _first_smoothness(problem, w), problem.objective(w)
    for step in range(1, _GRADIENT_STEPS + 1):
        trial, L = _proximal_step(problem, ahead, 0.9 * L)
        reached = problem.objective(trial)
        if not reached <= value:
            if momentum == 1.0:
                break
            ahead, momentum = w, 1.0
            continue
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
        ahead = trial + (momentum - 1.0) / following * (trial - w)
        w, value, momentum = trial, reached, following
        if step % _BETWEEN == 0:
            yield w
    yield w


def _first_smoothness(problem: Problem, w: Vector) -> float:
    """Return the curvature of f∘g along its gradient, by a difference."""
    gradient = problem.gradient(w)
    length = float(np.linalg.norm(gradient))
    if not length > 0.0:
        return 1.0
    probe = 1e-6 * (1.0 + float(np.linalg.norm(w)))
    change = problem.gradient(w - probe / length * gradient) - gradient
    L = float(np.linalg.norm(change)) / probe
    return L if 0.0 < L < math.inf else length


def _proximal_step(problem: Problem, w: Vector, L: float) -> tuple[Vector, float]:
    """Return a proximal gradient step, short enough that f∘g lies below its model there, and L."""
    gradient, value = problem.gradient(w), problem.smooth(w)
    for _ in range(_MOST_DOUBLINGS):
        trial = problem.regularizer.prox(w - gradient / L, 1.0 / L)
        move = trial - w
        model = value + float(gradient @ move) + 0.5 * L * float(move @ move)
        if problem.smooth(trial) <= model + 1e-14 * abs(value):
            break
        L *= 2.0
    return trial, L
