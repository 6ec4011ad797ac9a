"""The steps of docs/tracked_proof.md on paths of the algorithm itself: what holds for every outcome, step by step.

The means of each batch are recorded, and truncated here by (4) and (5) once more; w and y are those of the
solver's states. A solver that takes ∇f at the new average instead of the old one breaks the bounds.
"""

import dataclasses
import functools
import itertools
import math
from dataclasses import fields
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from stoic import L1, Levels, LogSumExp, Problem, SmallestBall, TrackedROSC, Zero
from streams import Signs, Stream

ROUNDING = 1e-9


class Student:
    """ξ is Student(2.5) over √5: variance 1, no third moment."""

    def means(self, n, shape, rng):
        return rng.standard_t(2.5, (n, *shape)).mean(axis=0) / math.sqrt(5.0)


class Recorder:
    """An inner part that keeps the means of whole batches."""

    def __init__(self, inner):
        self._inner, self.values, self.jacobians = inner, [], []

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def value(self, w, batch, blocks=1):
        return self._kept(self.values, self._inner.value(w, batch, blocks))

    def jacobian(self, w, batch, blocks=1):
        return self._kept(self.jacobians, self._inner.jacobian(w, batch, blocks))

    @staticmethod
    def _kept(record, means):
        if len(means) == 1:
            record.append(means[0])
        return means


class LogCosh:
    """f(u) = Σ log cosh u_i: C_f = √p, L_f = 1, M_f = 4/(3√3), and least at 0."""

    def value(self, u):
        return float(np.log(np.cosh(u)).sum())

    def gradient(self, u):
        return np.tanh(u)

    def hessian(self, u):
        return np.diag(1.0 - np.tanh(u) ** 2)


class Path(NamedTuple):
    """w_t and y_t of n + 1 states; means of n batches and ŷ_t; g(w_t), b_t, ζ_t and F(w_t) − F*."""

    w: np.ndarray
    y: np.ndarray
    means: np.ndarray
    y_hat: np.ndarray
    g: np.ndarray
    biases: np.ndarray
    noises: np.ndarray
    gaps: np.ndarray
    solver: TrackedROSC

    @property
    def errors(self):
        """err_t = b_t + ζ_t: how far the step's gradient is from ∇Φ(w_t)."""
        return self.biases + self.noises

    @property
    def e(self):
        """e_t = y_t − g(w_t)."""
        return self.y - self.g

    @property
    def n(self):
        return len(self.y_hat)

    @property
    def kernel(self):
        """K_ts = β(1 − β)^(t−1−s) for s < t < n, and (1 − β)^t in a column of its own."""
        t, s = np.arange(self.n)[:, None], np.arange(self.n)
        beta = self.solver.weight
        return np.where(s < t, beta * (1 - beta) ** np.maximum(t - 1 - s, 0), 0.0), (1 - beta) ** t[:, 0]


class Case(NamedTuple):
    """A problem with its optimum and constants, and a solver for it."""

    problem: Problem
    w0: np.ndarray
    best: np.ndarray
    C_f: float
    L_f: float
    C_g: float
    M_f: float
    sigma0: float
    sigma1: float
    solver: TrackedROSC

    def objective(self, w):
        inner = self.problem.inner
        return self.problem.outer.value(inner.expected(w)) + self.problem.regularizer.value(w)


def run(case, solver, n, seed=0):
    """Return the path of n steps."""
    problem, rng = case.problem, np.random.default_rng(seed)
    inner = Recorder(dataclasses.replace(problem.inner, _numbers=itertools.count()))
    slope = problem.outer.gradient
    problem = Problem(inner, problem.outer, problem.regularizer)
    states = [solver.init(problem, case.w0, rng)]
    for _ in range(n):
        states.append(solver.step(problem, states[-1], rng)[0])
    w, y = np.array([state.w for state in states]), np.array([state.y for state in states])
    reference, levels = states[0].reference, solver.levels
    far = np.linalg.norm(w - case.w0, axis=1)

    def truncated(means, center, radii):
        kept = zip(means, radii, strict=False)
        return np.array([x if np.linalg.norm(x - center) <= radius else center for x, radius in kept])

    y_hat = truncated(inner.values, reference.y, levels.C_g * far + levels.slack_y)  # (4)
    z_hat = truncated(inner.jacobians, reference.z, levels.L_g * far + levels.slack_z)  # (5)
    g, jacobians = np.array([*map(inner.expected, w)]), [*map(inner.expected_jacobian, w)]
    biases = np.array([jacobians[t].T @ (slope(g[t]) - slope(y[t])) for t in range(n)])
    noises = np.array([(jacobians[t] - z_hat[t]).T @ slope(y[t]) for t in range(n)])
    gaps = np.array([*map(case.objective, w)]) - case.objective(case.best)
    return Path(w, y, np.array(inner.values), y_hat, g, biases, noises, gaps, solver)


def wild(law, h=0.6, planted=None, **settings):
    """Convex quadratics under LogSumExp and L1, heavy noise in values and Jacobians, a ball that binds."""
    inner = Stream(
        b=np.array([0.3, -0.2, 0.1]),
        A=np.array([[1.0, 0.3], [-0.6, 0.8], [0.2, -0.9]]),
        h=np.array([[h, 0.2], [0.1, h], [0.3, 0.3]]),
        scale=np.array([0.6, 0.9, 0.4]),
        waves=np.array([[0.5, 0.1], [-0.3, 0.6], [0.2, 0.4]]),
        phases=np.array([1.2, 0.8, 0.5]),
        law=law,
        planted=planted or {},
    )
    problem, w0 = Problem(inner, LogSumExp(1.0), L1(0.1)), np.array([0.9, -0.8])

    def split(x):
        w = x[:2] - x[2:]
        value = problem.outer.value(inner.expected(w)) + 0.1 * x.sum()
        slope = inner.expected_jacobian(w).T @ problem.outer.gradient(inner.expected(w))
        return value, np.concatenate([slope, -slope]) + 0.1

    found = scipy_minimize(split, np.ones(4), jac=True, bounds=[(0, None)] * 4, options={"ftol": 0, "gtol": 1e-12})
    best = found.x[:2] - found.x[2:]
    D = 1.01 * float(np.linalg.norm(w0 - best))
    C_g = float(np.linalg.norm(inner.expected_jacobian(w0), 2)) + inner.L_g * D
    L = inner.L_g + 0.5 * C_g**2
    nu = math.sqrt(27 / 100)
    root = math.sqrt(300)
    slack_y = max(C_g * D, inner.sigma0 * root) + 2 * nu * inner.sigma0
    slack_z = max(inner.L_g * D, inner.sigma1 * root) + 2 * nu * inner.sigma1
    given = {
        "step_size": 0.5 / L,
        "weight": 0.1,
        "radius": D,
        "batch_size": 1,
        "n_steps": 300,
        "reference_size": 1300,
        "reference_mean": SmallestBall(0.5),
        "levels": Levels(C_g, inner.L_g, slack_y, slack_z),
        "truncates": "batches",
    }
    solver = TrackedROSC(**(given | settings))
    M_f = problem.outer.hessian_lipschitz
    return Case(problem, w0, best, 1.0, 0.5, C_g, M_f, inner.sigma0, inner.sigma1, solver)


def at_rest():
    """g(w; ξ) = w ± 2 under log cosh, started at the optimum 0 with an average that is almost exact."""
    inner = Stream(
        b=np.zeros(1),
        A=np.ones((1, 1)),
        h=np.zeros((1, 1)),
        scale=np.array([2.0]),
        waves=np.zeros((1, 1)),
        phases=np.array([math.pi / 2]),
        law=Signs(),
    )
    solver = TrackedROSC(
        step_size=0.5,
        weight=0.2,
        radius=3.0,
        batch_size=1,
        n_steps=100,
        reference_size=13 * 10**6,
        reference_mean=SmallestBall(0.5),
        levels=Levels(1.0, 0.0, 100.0, 100.0),
        truncates="batches",
    )
    zero = np.zeros(1)
    return Case(
        Problem(inner, LogCosh(), Zero()), zero, zero, 1.0, 1.0, 1.0, 4 / (3 * math.sqrt(3)), 2.0, 0.0, solver
    )


CASES = {
    "wild": wild(Student()),
    "planted": wild(Student(), planted={40: 300.0, 90: -500.0}),
    "at rest": at_rest(),
}


@pytest.fixture(params=CASES)
def case_name(request):
    return request.param


@pytest.fixture
def case(case_name):
    return CASES[case_name]


@functools.cache
def path_of(name):
    return run(CASES[name], CASES[name].solver, 300)


@pytest.fixture
def path(case_name):
    return path_of(case_name)


def squares(x):
    return (x * x).sum(axis=-1)


def test_the_cases_are_what_they_are_meant_to_be():
    wild, planted = path_of("wild"), path_of("planted")
    reach = np.linalg.norm(wild.w - wild.w[0], axis=1) / wild.solver.radius
    assert (reach > 1 - 1e-9).sum() > 3  # the ball binds
    assert (planted.y_hat == planted.y[0]).all(axis=1).sum() == 2  # two batches are replaced by the reference
    assert np.abs(path_of("at rest").y[0]) < 0.01


def test_step_0_truncation_bounds_the_error_of_a_batch_and_never_increases_it():
    case = CASES["planted"]
    path, D = path_of("planted"), case.solver.radius
    far = np.linalg.norm(path.y_hat - path.g[:-1], axis=1)
    assert np.linalg.norm(path.e[0]) <= math.sqrt(27 / 100) * case.sigma0  # the reference is good
    assert (far <= np.linalg.norm(path.means - path.g[:-1], axis=1) + ROUNDING).all()
    assert (far <= 6 * max(case.sigma0 * math.sqrt(300), case.C_g * D)).all()


def points(case, path, n=200):
    """Return the optimum, the iterates, and points of the ball."""
    rng = np.random.default_rng(1)
    directions = rng.standard_normal((n, case.w0.size))
    directions *= (case.solver.radius * rng.random(n) / np.linalg.norm(directions, axis=1))[:, None]
    return np.array([case.best, *path.w[::10], *(case.w0 + directions)])


def excess_of_step_1(case, path):
    """Return the largest of left side less right side of (S), over all steps and points."""
    eta, errors = path.solver.step_size, path.errors
    values = np.array([*map(case.objective, path.w)])
    worst = -math.inf
    for w in points(case, path):
        way = squares(path.w - w)
        right = (way[:-1] - way[1:]) / (2 * eta) + eta * squares(errors)
        right += (errors * (path.w[:-1] - w)).sum(axis=1)
        worst = max(worst, (values[1:] - case.objective(w) - right).max())
    return worst


def test_step_1_a_step_goes_down_but_for_its_error(case, path):
    assert excess_of_step_1(case, path) <= ROUNDING


def test_step_2_what_is_left_of_the_bias_of_a_step(case, path):
    """⟨b_t, w_t − w*⟩ ≤ −⟨e_t, h_t⟩_H + PD²‖e_t‖ + C_g M_f D‖e_t‖²."""
    inner, D = case.problem.inner, case.solver.radius
    H = case.problem.outer.hessian(inner.expected(case.best))
    e, h = path.e[:-1], path.g[:-1] - inner.expected(case.best)
    P = 2 * case.L_f * inner.L_g + 4 * case.C_g**2 * case.M_f
    right = -((e @ H) * h).sum(axis=1) + P * D**2 * np.sqrt(squares(e)) + case.C_g * case.M_f * D * squares(e)
    assert ((path.biases * (path.w[:-1] - case.best)).sum(axis=1) <= right + ROUNDING).all()


@pytest.mark.parametrize("is_convex", [True, False])
def test_step_3_is_an_identity(case, path, is_convex):
    """For ∇²f(g*), and for a symmetric H of either sign."""
    best = case.problem.inner.expected(case.best)
    H = case.problem.outer.hessian(best)
    if not is_convex:
        noise = np.random.default_rng(2).standard_normal(H.shape)
        H = noise + noise.T

    def product(a, b):
        return ((a @ H) * b).sum(axis=1)

    beta, v, e = path.solver.weight, path.y - best, path.e[:-1]
    h, fresh = path.g[:-1] - best, path.y_hat - path.g[:-1]  # ξ_t + τ_t
    moved = path.y_hat - path.y[:-1]
    telescoped = (product(v, v)[1:] - product(v, v)[:-1]) / (2 * beta)
    right = product(e, e) + telescoped - product(v[:-1], fresh) - beta / 2 * product(moved, moved)
    np.testing.assert_allclose(right, -product(e, h), atol=ROUNDING * (1 + np.abs(product(moved, moved)).max()))


def test_step_4_the_lag_of_y_is_bounded_by_the_way_of_w(case, path):
    kernel, start = path.kernel
    fresh = path.y_hat - path.g[:-1]
    lag = path.e[:-1] - start[:, None] * path.e[0] - kernel @ fresh
    q = kernel_of_way(path)
    assert (squares(lag) <= case.C_g**2 * q + ROUNDING).all()
    assert (squares(lag) <= (2 * case.C_g * path.solver.radius) ** 2 + ROUNDING).all()


def kernel_of_way(path):
    """Return q_t: the weighted squares of the ways from earlier iterates to w_t."""
    kernel, start = path.kernel
    w = path.w[:-1]
    ways = squares(w[:, None] - w)
    return (kernel * ways).sum(axis=1) + start * ways[:, 0]


def excess_of_step_5(path):
    """Return the largest of ‖w_t − w_s‖² less its bound by what happened from s to t, over all s < t."""
    eta, errors, w = path.solver.step_size, path.errors, path.w
    worst = -math.inf
    for s in range(path.n):
        steps = np.arange(1, path.n - s + 1)
        along = np.cumsum((errors[s:] * (w[s:-1] - w[s])).sum(axis=1))
        right = 2 * eta * steps * path.gaps[s] + 2 * eta**2 * np.cumsum(squares(errors[s:])) + 2 * eta * along
        worst = max(worst, (squares(w[s + 1 :] - w[s]) - right).max())
    return worst


def test_step_5_the_way_from_an_iterate_is_bounded_by_its_gap_and_the_errors(path):
    assert excess_of_step_5(path) <= ROUNDING


def test_step_5_the_sum_of_the_ways_is_bounded(path):
    """Q ≤ 4(η/β)Σa_s + 4ηa_0/β² + 4(η²/β)Σ‖err_i‖² + 4(η²/β²)Σ‖b_i‖² + 4η(Σ⟨ζ_i, p_i⟩)₊, p_i as printed."""
    eta, beta, n, w = path.solver.step_size, path.solver.weight, path.n, path.w[:-1]
    i, s = np.arange(n)[:, None], np.arange(n)
    kappa = np.where(s <= i, (1 - beta) ** np.maximum(i - s, 0) * (1 - (1 - beta) ** (n - 1 - i)), 0.0)
    start = np.array([((1 - beta) ** np.arange(k + 1, n)).sum() for k in range(n)])
    p = kappa.sum(axis=1)[:, None] * w - kappa @ w + start[:, None] * (w - w[0])
    along = (path.noises * p).sum()
    a = path.gaps[:-1]
    right = 4 * eta / beta * a.sum() + 4 * eta * a[0] / beta**2 + 4 * eta**2 / beta * squares(path.errors).sum()
    right += 4 * (eta / beta) ** 2 * squares(path.biases).sum() + 4 * eta * max(0.0, along)
    assert kernel_of_way(path).sum() <= right * (1 + ROUNDING)
    assert np.sqrt(squares(p)).max() <= 2 * path.solver.radius / beta


class TakesTheNewAverage(TrackedROSC):
    def estimates(self, before, fresh):
        _, after = super().estimates(before, fresh)
        return after, after


def test_the_bounds_of_steps_1_and_5_notice_a_gradient_at_the_new_average():
    case = CASES["at rest"]
    settings = {item.name: getattr(case.solver, item.name) for item in fields(case.solver)}
    path = run(case, TakesTheNewAverage(**settings), 50)
    assert excess_of_step_1(case, path) > 0.01
    assert excess_of_step_5(path) > 0.01


def test_step_6_bernstein_and_pinelis_give_what_is_printed():
    """With C_f D, C_f and M divided out; u is σ√T/M ≤ 1. R, V and the bias are those of Step 0."""
    rng = np.random.default_rng(0)
    ell, T, u = rng.exponential(5.0, 10_000) + math.log(10), 4 + rng.exponential(50.0, 10_000), rng.random(10_000)

    def bernstein(V, R):
        return np.sqrt(2 * V * ell) + R * ell / 3

    assert (4 * u + bernstein(4 * u**2, 12 + 4 * u / T) <= 8 * (ell + 1)).all()  # a, c, d
    assert (u**2 + bernstein(36 * u**2, 36) <= 8 * (3 * ell + 2)).all()  # b, f
    assert (2 * 8 * (3 * ell + 2) + 8 * u**2 / T <= 17 * (3 * ell + 2)).all()  # f
    beta = 0.2 * (1 - rng.random(10_000))
    n = np.floor(1 / (2 * beta)) + 1
    grown = (1 - beta) ** (1 - n)
    assert (grown <= 1.75).all()  # e
    assert (2 * grown**2 * beta / (2 - beta) <= 4 * beta).all()
    assert (grown * 7 / 3 <= 4.1).all()
    assert (np.ceil(T / n) <= np.ceil(2 * beta * T)).all()
    assert 4 / 3 * 5 / 9 * 17 <= 13  # g
