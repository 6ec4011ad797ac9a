"""Every part and every method at least once: small problems whose optimum an independent solver finds.

A new solver adds a row to `METHODS`; a new part adds a problem to `CASES`.
"""

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

import stoic

METHODS = (
    "auto",
    "mscg",
    "rmscg",
    "rmscg-robust",
    "rosc",
    "rrosc",
    "rrosc-tracked",
    "rrosc-growing",
    "scgd",
    "asc-pg",
    "civr",
    "rcivr",
    "rsmd",
    "prox-boost",
    "clipped-sgd",
    "scsc",
    "alexr",
    "sox",
    "sox-tracked",
    "newton",
    "sample-average",
)

# Assumptions that some methods make on top of the paper's.
NEEDS_LINEAR_OUTER = ("rsmd",)
NEEDS_STRONG_CONVEXITY = ("prox-boost",)
NEEDS_SECOND_DERIVATIVES = ("newton",)

DETERMINISTIC = ("newton", "auto")  # on finite data, which the budget allows to draw


@dataclass(frozen=True)
class Case:
    """A problem, and the convex program that CVXPY solves in its place."""

    name: str
    problem: stoic.Problem
    program: Callable[[cp.Variable], tuple[cp.Expression, list[cp.Constraint]]]

    @functools.cached_property
    def w0(self) -> np.ndarray:
        return self.problem.start(None)

    @functools.cached_property
    def optimum(self) -> np.ndarray:
        w = cp.Variable(self.problem.dimension)
        objective, constraints = self.program(w)
        program = cp.Problem(cp.Minimize(objective), constraints)
        tight = {f"tol_{kind}": 1e-12 for kind in ("gap_abs", "gap_rel", "feas")}
        with warnings.catch_warnings():  # 1e-12 is more than some programs allow; the tests need 1e-10
            warnings.filterwarnings("ignore", "Solution may be inaccurate")
            program.solve(cp.CLARABEL, **tight)
        # The last digits of feasibility are the solver's; the point compared with is exactly feasible.
        return self.problem.regularizer.prox(np.array(w.value), 1e-12)

    @functools.cached_property
    def best(self) -> float:
        return self.problem.objective(self.optimum)

    @functools.cached_property
    def range(self) -> float:
        """F(w₀) − F*, the yardstick of all gaps."""
        return self.problem.objective(self.w0) - self.best

    def relative_gap(self, w: np.ndarray) -> float:
        return (self.problem.objective(w) - self.best) / self.range


def _data(seed, *, p, d, rows=60, noise=0.3, labels=False):
    """Light-tailed regression data whose groups differ in model and noise."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(p), rows)
    X = rng.standard_normal((p * rows, d)) * np.linspace(1.0, 0.7, d)
    models = rng.standard_normal(d) + 0.3 * rng.standard_normal((p, d))
    y = (X * models[groups]).sum(axis=1) + noise * (1 + groups / p) * rng.standard_normal(p * rows)
    return X, np.where(y > 0, 1.0, -1.0) if labels else y, groups


# --- the same mathematics as CVXPY expressions, written without stoic ---


def _means(losses, groups):
    return cp.hstack([cp.sum(losses[groups == i]) / np.sum(groups == i) for i in np.unique(groups)])


def _logsumexp(u, temperature):
    return temperature * (cp.log_sum_exp(u / temperature) - np.log(u.size))


def _smooth_cvar(u, level, temperature):
    over = cp.Variable(u.size, nonneg=True)  # multipliers of q_i <= 1/(level p)
    return _logsumexp(u - over, temperature) + cp.sum(over) / (level * u.size)


def _smoothed_absolute(r, smoothing):
    return cp.huber(r, smoothing) / (2 * smoothing)


def _smoothed_pinball(r, level, smoothing):
    v = cp.Variable(r.size)
    pinball = cp.maximum(level * v, (level - 1) * v)
    return pinball + cp.square(v - r) / (2 * smoothing)


def _case(name, inner, outer, regularizer, program):
    return Case(name, stoic.Problem(inner, outer, regularizer), program)


def _line_fit():
    X, y, _ = _data(1, p=1, d=2)
    return _case(
        "linear-zero",
        stoic.GroupLoss(X, y),
        stoic.Linear(),
        stoic.Zero(),
        lambda w: (cp.sum_squares(X @ w - y) / len(y), []),
    )


def _kl_ridge():
    X, y, g = _data(2, p=4, d=10)
    return _case(
        "logsumexp-l2",
        stoic.GroupLoss(X, y, g),
        stoic.LogSumExp(2.0),
        stoic.L2(0.1),
        lambda w: (_logsumexp(_means(cp.square(X @ w - y), g), 2.0) + 0.05 * cp.sum_squares(w), []),
    )


def _kl_lasso():
    X, y, g = _data(3, p=3, d=20)
    return _case(
        "logsumexp-l1",
        stoic.GroupLoss(X, y, g),
        stoic.LogSumExp(5.0),
        stoic.L1(0.2),
        lambda w: (_logsumexp(_means(cp.square(X @ w - y), g), 5.0) + 0.2 * cp.norm1(w), []),
    )


def _kl_elastic_net():
    X, y, g = _data(4, p=8, d=50)
    return _case(
        "logsumexp-elastic-net",
        stoic.GroupLoss(X, y, g),
        stoic.LogSumExp(10.0),
        stoic.ElasticNet(0.2, 0.5),
        lambda w: (
            _logsumexp(_means(cp.square(X @ w - y), g), 10.0) + 0.1 * cp.norm1(w) + 0.05 * cp.sum_squares(w),
            [],
        ),
    )


def _cvar_ridge():
    X, y, g = _data(5, p=5, d=8)
    return _case(
        "cvar-l2",
        stoic.GroupLoss(X, y, g),
        stoic.SmoothCVaR(0.4, 2.0),
        stoic.L2(0.1),
        lambda w: (_smooth_cvar(_means(cp.square(X @ w - y), g), 0.4, 2.0) + 0.05 * cp.sum_squares(w), []),
    )


def _kl_baseline():
    X, y, g = _data(10, p=4, d=6)
    b = np.array([0.0, 3.0, -2.0, 5.0])
    return _case(
        "logsumexp-baseline-l2",
        stoic.GroupLoss(X, y, g),
        stoic.LogSumExp(5.0, baseline=b),
        stoic.L2(0.1),
        lambda w: (_logsumexp(_means(cp.square(X @ w - y), g) - b, 5.0) + 0.05 * cp.sum_squares(w), []),
    )


def _cvar_baseline():
    X, y, g = _data(11, p=5, d=6)
    b = np.array([1.0, -3.0, 0.0, 2.0, 4.0])
    return _case(
        "cvar-baseline-l2",
        stoic.GroupLoss(X, y, g),
        stoic.SmoothCVaR(0.5, 2.0, baseline=b),
        stoic.L2(0.1),
        lambda w: (_smooth_cvar(_means(cp.square(X @ w - y), g) - b, 0.5, 2.0) + 0.05 * cp.sum_squares(w), []),
    )


def _cvar_box():
    X, y, g = _data(6, p=6, d=5)
    return _case(
        "cvar-box",
        stoic.GroupLoss(X, y, g),
        stoic.SmoothCVaR(0.5, 3.0),
        stoic.Box(-0.5, 0.8),
        lambda w: (_smooth_cvar(_means(cp.square(X @ w - y), g), 0.5, 3.0), [w >= -0.5, w <= 0.8]),
    )


def _returns():
    return np.linspace(0.1, 0.5, 6) + np.random.default_rng(7).standard_normal((200, 6)) * np.linspace(0.2, 0.5, 6)


def _mean_variance(X, w):
    return cp.sum_squares((X - X.mean(axis=0)) @ w) / len(X) - X.mean(axis=0) @ w


def _portfolio_simplex():
    X = _returns()
    return _case(
        "mean-variance-simplex",
        stoic.Moments(X),
        stoic.MeanVariance(1.0),
        stoic.Simplex(),
        lambda w: (_mean_variance(X, w), [w >= 0, cp.sum(w) == 1]),
    )


def _portfolio_ridge():
    X = _returns()
    return _case(
        "mean-variance-l2",
        stoic.Moments(X),
        stoic.MeanVariance(1.0),
        stoic.L2(0.5),
        lambda w: (_mean_variance(X, w) + 0.25 * cp.sum_squares(w), []),
    )


def _huber_lasso():
    X, y, g = _data(8, p=2, d=15)
    weights = np.array([0.3, 0.7])
    return _case(
        "linear-huber-l1",
        stoic.GroupLoss(X, y, g, loss=stoic.Huber(1.5)),
        stoic.Linear(weights),
        stoic.L1(0.05),
        lambda w: (weights @ _means(cp.huber(X @ w - y, 1.5), g) + 0.05 * cp.norm1(w), []),
    )


def _logistic_ridge():
    X, y, g = _data(9, p=3, d=5, labels=True)
    return _case(
        "logsumexp-logistic-l2",
        stoic.GroupLoss(X, y, g, loss="logistic"),
        stoic.LogSumExp(0.5),
        stoic.L2(0.1),
        lambda w: (
            _logsumexp(_means(cp.logistic(-cp.multiply(y, X @ w)), g), 0.5) + 0.05 * cp.sum_squares(w),
            [],
        ),
    )


def _absolute_elastic_net():
    X, y, g = _data(10, p=2, d=4)
    return _case(
        "logsumexp-absolute-elastic-net",
        stoic.GroupLoss(X, y, g, loss=stoic.Absolute(0.5)),
        stoic.LogSumExp(1.0),
        stoic.ElasticNet(0.1, 0.3),
        lambda w: (
            _logsumexp(_means(_smoothed_absolute(X @ w - y, 0.5), g), 1.0)
            + 0.03 * cp.norm1(w)
            + 0.035 * cp.sum_squares(w),
            [],
        ),
    )


def _quantile_intercept():
    X, y, g = _data(11, p=3, d=5)
    return _case(
        "linear-quantile-intercept-l2",
        stoic.GroupLoss(X, y + 1.0, g, loss=stoic.Quantile(0.7, 0.5), intercept=True),
        stoic.Linear(),
        stoic.L2(0.05),
        lambda w: (
            cp.sum(_means(_smoothed_pinball(y + 1.0 - X @ w[:-1] - w[-1], 0.7, 0.5), g)) / 3
            + 0.025 * cp.sum_squares(w[:-1]),
            [],
        ),
    )


def _sparse_ridge():
    X, y, g = _data(12, p=4, d=30)
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    return _case(
        "sparse-logsumexp-l2",
        stoic.GroupLoss(sp.csr_array(X), y, g),
        stoic.LogSumExp(10.0),
        stoic.L2(0.2),
        lambda w: (_logsumexp(_means(cp.square(X @ w - y), g), 10.0) + 0.1 * cp.sum_squares(w), []),
    )


def _logistic_box():
    X, y, g = _data(13, p=8, d=3, labels=True)
    return _case(
        "linear-logistic-box",
        stoic.GroupLoss(X, y, g, loss="logistic"),
        stoic.Linear(),
        stoic.Box(-0.6, 0.6),
        lambda w: (
            cp.sum(_means(cp.logistic(-cp.multiply(y, X @ w)), g)) / 8,
            [w >= -0.6, w <= 0.6],
        ),
    )


def _huber_simplex():
    X, y, g = _data(14, p=3, d=5)
    return _case(
        "logsumexp-huber-simplex",
        stoic.GroupLoss(X, y, g, loss="huber"),
        stoic.LogSumExp(1.0),
        stoic.Simplex(2.0),
        lambda w: (_logsumexp(_means(cp.huber(X @ w - y), g), 1.0), [w >= 0, cp.sum(w) == 2]),
    )


def _softmax_ridge():
    X, y, g = _data(16, p=3, d=3)
    K, classes = 3, np.digitize(y, [-0.5, 0.5])

    def program(w):
        scores = X @ cp.reshape(w, (3, K), order="C")
        losses = cp.log_sum_exp(scores, axis=1) - cp.sum(cp.multiply(scores, np.eye(K)[classes]), axis=1)
        return _logsumexp(_means(losses, g), 0.5) + 0.05 * cp.sum_squares(w), []

    inner = stoic.GroupSoftmax(X, classes, g, n_classes=K)
    return _case("logsumexp-softmax-l2", inner, stoic.LogSumExp(0.5), stoic.L2(0.1), program)


def _own_functions():
    rng = np.random.default_rng(15)
    data = rng.standard_normal((150, 3))

    def value(w, x):  # two squared distances, to the samples and to their mirror images
        return np.stack([((w - x) ** 2).sum(axis=1), ((w + 2.0 * x) ** 2).sum(axis=1)], axis=1)

    def jacobian(w, x):
        return np.stack([2.0 * (w - x), 2.0 * (w + 2.0 * x)], axis=1)

    return _case(
        "own-functions-l1",
        stoic.FunctionInner(value, jacobian, shape=(2, 3), data=data + 1.0),
        stoic.LogSumExp(4.0),
        stoic.L1(0.1),
        lambda w: _own_program(data + 1.0, w),
    )


def _own_program(data, w):
    mean, square = data.mean(axis=0), (data**2).sum() / len(data)
    first = cp.sum_squares(w) - 2 * mean @ w + square
    second = cp.sum_squares(w) + 4 * mean @ w + 4 * square
    return _logsumexp(cp.hstack([first, second]), 4.0) + 0.1 * cp.norm1(w), []


CASES = {
    case.name: case
    for case in (
        _line_fit(),
        _kl_ridge(),
        _kl_lasso(),
        _kl_elastic_net(),
        _cvar_ridge(),
        _cvar_box(),
        _portfolio_simplex(),
        _portfolio_ridge(),
        _huber_lasso(),
        _logistic_ridge(),
        _absolute_elastic_net(),
        _quantile_intercept(),
        _sparse_ridge(),
        _kl_baseline(),
        _cvar_baseline(),
        _logistic_box(),
        _huber_simplex(),
        _softmax_ridge(),
        _own_functions(),
    )
}


def is_within_assumptions(method: str, case: Case) -> bool:
    """Whether a method's assumptions hold: said here anew, not asked of the code under test."""
    if method in NEEDS_SECOND_DERIVATIVES:
        outers = stoic.Linear | stoic.LogSumExp | stoic.SmoothCVaR | stoic.MeanVariance
        has_them = isinstance(case.problem.outer, outers) and "own" not in case.name
        return has_them and not case.name.endswith(("box", "simplex"))
    if method in NEEDS_LINEAR_OUTER:
        return isinstance(case.problem.outer, stoic.Linear)
    if method in NEEDS_STRONG_CONVEXITY:
        has_curvature = case.name.endswith(("-l2", "-elastic-net"))
        return has_curvature and "intercept" not in case.name
    return True
