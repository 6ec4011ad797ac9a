"""Rivals of the exact solver on one objective: L-BFGS, Newton-CG, FISTA, averaged SGD, PyTorch and skglm."""

import contextlib
import importlib.util
import time

import numba
import numpy as np
import scipy.sparse as sp
from scipy.optimize import fmin_l_bfgs_b
from scipy.special import expit, logsumexp, softmax

import stoic
from stoic.regularizers.terms import terms_of


class Reached(Exception):  # noqa: N818
    """The objective is low enough, or the time is over."""


class Trace:
    """Seconds and objectives of the iterates of a run."""

    def __init__(self):
        self.points, self.least, self.began = [], np.inf, time.perf_counter()

    def add(self, seconds, value, w=None):
        self.points.append((seconds, value))
        if value < self.least:
            self.least, self.w = value, w

    def note(self, value, target, limit):
        """Add what a method has computed by itself, and end it where that is low enough."""
        seconds = time.perf_counter() - self.began
        self.add(seconds, value)
        if value <= target or seconds > limit:
            raise Reached

    def seconds(self, goal):
        """Return when the objective was first at the goal; infinity where it never was."""
        return min((seconds for seconds, value in self.points if value <= goal), default=np.inf)


class Objective:
    """F of a problem as a rival would write it: predictions once for value and gradient."""

    def __init__(self, problem):
        inner = problem.inner
        self.X, self.y, self.codes, self.p = inner.X, inner.y, inner.grouped_rows.codes, inner.n_groups
        self.shares, self.loss = inner.grouped_rows.shares, type(inner.loss).__name__.lower()
        self.h = getattr(inner.loss, "threshold", 1.0)
        self.temperature = getattr(problem.outer, "temperature", None)
        terms = terms_of(problem.regularizer, problem.dimension)
        self.l1, self.l2 = float(terms.l1[0]), float(terms.l2[0])
        self.d = problem.dimension

    def outer(self, u):
        """Return f(u) and its gradient."""
        if self.temperature is None:
            return float(u.mean()), np.full(self.p, 1.0 / self.p)
        value = self.temperature * (logsumexp(u / self.temperature) - np.log(self.p))
        return float(value), softmax(u / self.temperature)

    def losses(self, t):
        if self.loss == "logistic":
            margin = -self.y * t
            return np.maximum(margin, 0.0) + np.log1p(np.exp(-np.abs(margin)))
        r = np.abs(t - self.y)
        if self.loss == "squared":
            return r * r
        near = np.minimum(r, self.h)
        return near * (2.0 * r - near)

    def slopes(self, t):
        if self.loss == "logistic":
            return -self.y * expit(-self.y * t)
        r = t - self.y
        return 2.0 * (r if self.loss == "squared" else np.minimum(np.maximum(r, -self.h), self.h))

    def curvatures(self, t):
        if self.loss == "logistic":
            s = expit(t)
            return s * (1.0 - s)
        return 2.0 * (np.ones_like(t) if self.loss == "squared" else np.abs(t - self.y) <= self.h)

    def groups(self, terms):
        return np.bincount(self.codes, self.shares * terms, minlength=self.p)

    def smooth(self, w, t=None):
        """Return f(g(w)) with the L2 term, its gradient, and the predictions."""
        t = self.X @ w if t is None else t
        value, q = self.outer(self.groups(self.losses(t)))
        c = self.shares * q[self.codes] * self.slopes(t)
        return value + 0.5 * self.l2 * float(w @ w), self.X.T @ c + self.l2 * w, t

    def value(self, w):
        return self.at(w, self.X @ w)

    def at(self, w, t):
        value = self.outer(self.groups(self.losses(t)))[0]
        return value + 0.5 * self.l2 * float(w @ w) + self.l1 * float(np.abs(w).sum())


def takes_smooth(problem):
    return terms_of(problem.regularizer, 1).l1[0] == 0.0


def lbfgs(problem, objective, target, limit):  # noqa: ARG001
    """scipy's L-BFGS-B with value and gradient in one pass; an L1 term by positive and negative parts."""
    trace, d = Trace(), objective.d

    def smooth(w):
        value, gradient, _ = objective.smooth(w)
        trace.note(value, target, limit)
        return value, gradient

    def split(z):
        w = z[:d] - z[d:]
        value, gradient, _ = objective.smooth(w)
        value += objective.l1 * float(z.sum())
        trace.note(value, target, limit)
        return value, np.concatenate([gradient + objective.l1, objective.l1 - gradient])

    options = {"maxiter": 5000, "maxfun": 10**6, "factr": 10.0, "pgtol": 1e-12}
    try:
        if objective.l1:
            fmin_l_bfgs_b(split, np.zeros(2 * d), bounds=[(0.0, None)] * (2 * d), **options)
        else:
            fmin_l_bfgs_b(smooth, np.zeros(d), **options)
    except Reached:
        pass
    return trace


def newton_cg(problem, objective, target, limit):
    """Newton's method by conjugate gradients, curvatures cached: products with X alone, Armijo's rule."""
    trace, o, outer = Trace(), objective, problem.outer
    w = np.zeros(o.d)
    value, g, t = o.smooth(w)
    try:
        trace.note(value, target, limit)
        for _ in range(200):
            u = o.groups(o.losses(t))
            q, slopes = o.outer(u)[1], o.shares * o.slopes(t)
            curved = o.shares * q[o.codes] * o.curvatures(t)

            def times(v, u=u, slopes=slopes, curved=curved):
                s = o.X @ v
                bent = outer.hessian_product(u, np.bincount(o.codes, slopes * s, minlength=o.p))
                return o.X.T @ (curved * s + slopes * bent[o.codes]) + o.l2 * v

            length = np.linalg.norm(g)
            p, r, rr = np.zeros(o.d), -g, float(g @ g)
            z = r.copy()
            for _ in range(200):
                if np.sqrt(rr) <= min(0.5, np.sqrt(length)) * length or time.perf_counter() - trace.began > limit:
                    break
                hz = times(z)
                curvature = float(z @ hz)
                if curvature <= 1e-300:
                    break
                step = rr / curvature
                p, r = p + step * z, r - step * hz
                rr, before = float(r @ r), rr
                z = r + rr / before * z
            s, along, step = o.X @ p, float(g @ p), 1.0
            while o.at(w + step * p, t + step * s) > value + 1e-4 * step * along and step > 1e-10:
                step *= 0.5
            w, t = w + step * p, t + step * s
            value, g, t = o.smooth(w, t)
            trace.note(value, target, limit)
            if step <= 1e-10:
                break
    except Reached:
        pass
    return trace


def fista(problem, objective, target, limit):  # noqa: ARG001
    """Accelerated proximal gradients with backtracking, and a restart where F rises."""
    trace, o = Trace(), objective
    w = ahead = np.zeros(o.d)
    L, momentum, before = 1e-3, 1.0, np.inf
    try:
        for _ in range(100_000):
            value, g, _ = o.smooth(ahead)
            L *= 0.9
            while True:
                new = ahead - g / L
                new = np.sign(new) * np.maximum(np.abs(new) - o.l1 / L, 0.0)
                move = new - ahead
                t = o.X @ new
                at = o.at(new, t)
                smooth = at - o.l1 * float(np.abs(new).sum())
                if smooth <= value + float(g @ move) + 0.5 * L * float(move @ move) + 1e-14 * abs(value):
                    break
                L *= 2.0
            trace.note(at, target, limit)
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            if at > before:
                ahead, momentum = new, 1.0
            else:
                ahead, momentum = new + (momentum - 1.0) / following * (new - w), following
            w, before = new, at
    except Reached:
        pass
    return trace


@numba.njit(cache=False)
def _sgd_dense(X, y, codes, c, w, average, first, rate, l2, l1, loss, h, rows, q, u, temperature):  # noqa: PLR0913, PLR0917
    k = first
    for j in rows:
        step = rate / np.sqrt(1.0 + k * rate * max(l2, 1e-8))
        t = 0.0
        for i in range(X.shape[1]):
            t += X[j, i] * w[i]
        slope = _slope(t, y[j], loss, h, u, codes[j]) * _weight(q, u, codes[j], c[j], temperature)
        for i in range(X.shape[1]):
            v = w[i] - step * (slope * X[j, i] + l2 * w[i])
            w[i] = np.sign(v) * max(abs(v) - step * l1, 0.0)
        k += 1
        share = 1.0 / max(1.0, 0.5 * k)
        for i in range(X.shape[1]):
            average[i] += share * (w[i] - average[i])
    return k


@numba.njit(cache=False)
def _sgd_sparse(data, indices, indptr, y, codes, c, w, scale, rate, l2, loss, h, rows, q, u, temperature, first):  # noqa: PLR0913, PLR0917
    k = first
    for j in rows:
        step = rate / np.sqrt(1.0 + k * rate * max(l2, 1e-8))
        t = 0.0
        for e in range(indptr[j], indptr[j + 1]):
            t += data[e] * w[indices[e]]
        t *= scale
        slope = _slope(t, y[j], loss, h, u, codes[j]) * _weight(q, u, codes[j], c[j], temperature)
        scale *= max(1e-6, 1.0 - step * l2)
        for e in range(indptr[j], indptr[j + 1]):
            w[indices[e]] -= step * slope / scale * data[e]
        if scale < 1e-6:
            for i in range(w.size):
                w[i] *= scale
            scale = 1.0
        k += 1
    return scale


@numba.njit(cache=False)
def _slope(t, y, loss, h, u, code):
    """Return the slope of a row, and let the mean loss of its group follow."""
    if loss == 2:
        m = -y * t
        value = max(m, 0.0) + np.log1p(np.exp(-abs(m)))
        slope = -y / (1.0 + np.exp(-m)) if m < 0 else -y * 1.0 / (1.0 + np.exp(-m))
    else:
        r = t - y
        near = r if loss == 0 else min(max(r, -h), h)
        value, slope = near * (2.0 * r - near), 2.0 * near
    u[code] += 0.001 * (value - u[code])
    return slope


@numba.njit(cache=False)
def _weight(q, u, code, c, temperature):
    """Return the weight of a row: its group's in the softmax of mean losses that are tracked."""
    if temperature <= 0.0:
        return c
    top = u.max()
    total = 0.0
    for i in range(u.size):
        total += np.exp((u[i] - top) / temperature)
    return c * q.size * np.exp((u[code] - top) / temperature) / total


class SGD:
    """Averaged SGD that tracks the groups' losses; its step is the best of seven after an epoch, tried before."""

    def __init__(self):
        self.tuned = {}

    def takes(self, problem):
        return takes_smooth(problem) or not sp.issparse(problem.inner.X)

    def __call__(self, problem, objective, target, limit):  # noqa: ARG002
        if id(objective) not in self.tuned:
            square = float(
                (objective.X.multiply(objective.X) if sp.issparse(objective.X) else objective.X**2).sum()
            )
            unit = objective.X.shape[0] / square
            tries = {unit * 4.0**k: self.run(objective, unit * 4.0**k, -np.inf, 0.0).least for k in range(-5, 2)}
            self.tuned = {id(objective): min(tries, key=lambda rate: np.nan_to_num(tries[rate], nan=np.inf))}
        return self.run(objective, self.tuned[id(objective)], target, limit)

    def run(self, o, rate, target, limit):
        """Run epochs with F looked at outside the clock after each."""
        rng, n, trace = np.random.default_rng(0), len(o.y), Trace()
        loss = {"squared": 0, "huber": 1, "logistic": 2}[o.loss]
        w, average, u, q, scale, k = np.zeros(o.d), np.zeros(o.d), np.zeros(o.p), np.zeros(o.p), 1.0, 0
        u[:] = o.groups(o.losses(np.zeros(n)))
        c = o.shares * n / o.p  # rows are drawn alike
        how, seconds, quiet = (loss, o.h), 0.0, 0
        temperature = o.temperature or 0.0
        while True:
            began = time.perf_counter()
            rows = rng.permutation(n)
            if sp.issparse(o.X):
                scale = _sgd_sparse(
                    o.X.data, o.X.indices, o.X.indptr, o.y, o.codes, c, w, scale, rate, o.l2, *how, rows, q, u,
                    temperature, k,
                )  # fmt: skip
                k += n
                answer = scale * w
            else:
                k = _sgd_dense(
                    o.X, o.y, o.codes, c, w, average, k, rate, o.l2, o.l1, *how, rows, q, u, temperature
                )  # fmt: skip
                answer = average
            seconds += time.perf_counter() - began
            value = o.value(answer)
            quiet = 0 if value < trace.least * (1.0 - 1e-5) else quiet + 1
            trace.add(seconds, value)
            if not np.isfinite(value) or value <= target or seconds > limit or quiet >= 3:
                return trace


class Torch:
    """PyTorch's L-BFGS with strong Wolfe line searches, where it is installed."""

    def takes(self, problem):
        return takes_smooth(problem) and importlib.util.find_spec("torch") is not None

    def __call__(self, problem, objective, target, limit):  # noqa: ARG002
        import torch

        o, trace = objective, Trace()
        if sp.issparse(o.X):
            X = torch.sparse_csr_tensor(o.X.indptr, o.X.indices, o.X.data, size=o.X.shape)
            back = o.X.T.tocsr()
            XT = torch.sparse_csr_tensor(back.indptr, back.indices, back.data, size=back.shape)
        else:
            X, XT = torch.from_numpy(o.X), torch.from_numpy(o.X).T
        w = torch.zeros(o.d, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.LBFGS([w], lr=1.0, max_iter=2000, history_size=10, line_search_fn="strong_wolfe",
                                      tolerance_grad=1e-12, tolerance_change=1e-16)  # fmt: skip

        def closure():
            with torch.no_grad():
                t = (X @ w).numpy()
                value, q = o.outer(o.groups(o.losses(t)))
                c = o.shares * q[o.codes] * o.slopes(t)
                w.grad = XT @ torch.from_numpy(c) + o.l2 * w
                value += 0.5 * o.l2 * float(w @ w)
            trace.note(value, target, limit)
            return torch.tensor(value)

        with contextlib.suppress(Reached):
            optimizer.step(closure)
        return trace


class Skglm:
    """skglm's working sets and coordinate descent, for one group, L1 and square loss, where it is installed."""

    def takes(self, problem):
        o = problem
        return (
            isinstance(o.outer, stoic.Linear)
            and isinstance(o.regularizer, stoic.L1)
            and isinstance(o.inner.loss, stoic.Squared)
            and importlib.util.find_spec("skglm") is not None
        )

    def __call__(self, problem, objective, target, limit):  # noqa: ARG002
        from skglm import Lasso

        trace = Trace()
        X = objective.X.tocsc() if sp.issparse(objective.X) else np.asfortranarray(objective.X)
        for tol in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10):  # each from w = 0: the least time for its accuracy
            began = time.perf_counter()
            model = Lasso(alpha=0.5 * objective.l1, tol=tol, fit_intercept=False).fit(X, objective.y)
            seconds = time.perf_counter() - began
            trace.add(seconds, objective.value(model.coef_))
            if trace.least <= target or time.perf_counter() - trace.began > limit:
                break
        return trace


class Rival:
    """A function as a rival."""

    def __init__(self, run, takes=lambda _: True):
        self.run, self.takes = run, takes

    def __call__(self, *arguments):
        return self.run(*arguments)


RIVALS = {
    "L-BFGS": Rival(lbfgs),
    "Newton-CG": Rival(newton_cg, takes_smooth),
    "FISTA": Rival(fista),
    "SGD": SGD(),
    "torch": Torch(),
    "skglm": Skglm(),
}
