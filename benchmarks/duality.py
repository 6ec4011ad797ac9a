"""Do certificates over data hold? Random problems of every kind, beside optima of SciPy.

Each problem has random parts (loss, outer function, regularizer, intercept, weights, temperature), and is looked
at from its start to its optimum. A bound fails if it is below F(w) less the lowest F that SciPy finds (L-BFGS-B on
split variables, SLSQP on the simplex), by more than the rounding of F itself.
"""

import argparse
import math
import warnings

import joblib
import numpy as np
from scipy.optimize import minimize

import stoic
from stoic.certificate.duality import duality_gap

LOSSES = ("squared", "huber", "absolute", "quantile", "logistic", "softmax", "moments")
OUTERS = ("linear", "logsumexp", "prior", "cvar")
PENALTIES = ("zero", "l1", "l2", "elasticnet", "box", "open box", "simplex")
POINTS = (0.0, 0.9, 0.9999, 1.0)  # of the way from the start to the optimum
ROUNDING = 1e-13


def random_problem(seed):
    """Return a problem, and what it is."""
    rng = np.random.default_rng([seed, 15])
    loss, outer, penalty = (str(rng.choice(names)) for names in (LOSSES, OUTERS, PENALTIES))
    n, d, p = int(rng.integers(4, 80)), int(rng.integers(1, 7)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1, d)
    if rng.random() < 0.2:
        X[:, rng.integers(d)] = 0.0
    groups = np.concatenate([np.arange(min(n, p)), rng.integers(0, p, max(0, n - p))])[:n]
    options = {"intercept": bool(rng.random() < 0.5)}
    if rng.random() < 0.4:
        options["sample_weight"] = rng.exponential(size=n) * (rng.random(n) < 0.8) + (np.arange(n) < p)
    y = X @ rng.standard_normal(d) * 10.0 ** rng.uniform(-1, 0.5) + rng.standard_t(2.1, n)
    inner = make_inner(loss, X, y, groups, options, rng)
    tau = float(10.0 ** rng.uniform(-2, 2))
    f = make_outer(outer, inner, tau, rng)
    return stoic.Problem(inner, f, make_penalty(penalty, d * inner_width(inner), rng)), (loss, outer, penalty)


def inner_width(inner):
    return getattr(inner, "n_classes", 1)


def make_inner(loss, X, y, groups, options, rng):
    if loss == "moments":
        return stoic.Moments(X)
    if loss == "softmax":
        classes = np.digitize(y, np.quantile(y, [0.3, 0.7]))
        return stoic.GroupSoftmax(X, classes, groups, n_classes=3, **options)
    scale = 10.0 ** rng.uniform(-2, 1)
    losses = {
        "squared": stoic.Squared(),
        "huber": stoic.Huber(scale),
        "absolute": stoic.Absolute(scale),
        "quantile": stoic.Quantile(float(rng.uniform(0.05, 0.95)), scale),
        "logistic": stoic.Logistic(),
    }
    target = np.where(y > np.median(y), 1.0, -1.0) if loss == "logistic" else y
    return stoic.GroupLoss(X, target, groups, loss=losses[loss], **options)


def make_outer(outer, inner, tau, rng):
    p = inner.shape[0]
    if isinstance(inner, stoic.Moments):
        return stoic.MeanVariance(tau)
    if outer == "linear":
        return stoic.Linear(rng.exponential(size=p))
    if outer == "cvar":
        return stoic.SmoothCVaR(float(rng.uniform(0.1, 1.0)), tau, baseline=rng.standard_normal(p))
    if outer == "prior":
        return stoic.LogSumExp(tau, rng.exponential(size=p) + 1e-3, baseline=rng.standard_normal(p))
    return stoic.LogSumExp(tau)


def make_penalty(penalty, d, rng):
    alpha = float(10.0 ** rng.uniform(-4, 0))
    low, high = -rng.exponential(size=d), rng.exponential(size=d)
    return {
        "zero": stoic.Zero(),
        "l1": stoic.L1(alpha),
        "l2": stoic.L2(alpha),
        "elasticnet": stoic.ElasticNet(alpha, float(rng.uniform(0.1, 0.9))),
        "box": stoic.Box(low, high),
        "open box": stoic.Box(
            np.where(rng.random(d) < 0.5, low, -np.inf), np.where(rng.random(d) < 0.5, high, np.inf)
        ),
        "simplex": stoic.Simplex(float(rng.exponential())),
    }[penalty]


def lowest(problem, start):
    """Return the best point that SciPy finds."""
    r = getattr(problem.regularizer, "regularizer", problem.regularizer)
    if isinstance(r, stoic.Simplex):
        return on_simplex(problem, r.total, start)
    d = problem.dimension
    k = d - problem.inner.n_unpenalized
    a, b = getattr(r, "weights", (0.0, 0.0))
    low, high = np.full(d, -np.inf), np.full(d, np.inf)
    if isinstance(r, stoic.Box):
        low[:k], high[:k] = r.low, r.high
    penalized = np.arange(d) < k

    def split(x):  # w = plus − minus
        w = x[:d] - x[d:]
        value = problem.smooth(w) + a * x.reshape(2, d)[:, penalized].sum() + 0.5 * b * float(w[:k] @ w[:k])
        slope = problem.gradient(w) + b * w * penalized
        return value, np.concatenate([slope, -slope]) + a * np.tile(penalized, 2)

    best = start
    for _ in range(2):  # started again from its answer: one run may end early
        x0 = np.concatenate([np.maximum(best, 0.0), np.maximum(-best, 0.0)])
        bounds = [*zip(np.maximum(low, 0), np.maximum(high, 0), strict=True)]
        bounds += [*zip(np.maximum(-high, 0), np.maximum(-low, 0), strict=True)]
        found = minimize(
            split,
            x0,
            jac=True,
            bounds=bounds,
            method="L-BFGS-B",
            options={"maxiter": 2000, "ftol": 0, "gtol": 1e-12, "maxcor": 30},
        )
        w = np.clip(found.x[:d] - found.x[d:], low, high)
        if problem.objective(w) < problem.objective(best):
            best = w
    return best


def on_simplex(problem, total, start):
    d = problem.dimension
    k = d - problem.inner.n_unpenalized
    row = (np.arange(d) < k).astype(float)
    bounds = [(0.0, None)] * k + [(None, None)] * (d - k)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = minimize(
            problem.smooth,
            start,
            jac=problem.gradient,
            bounds=bounds,
            method="SLSQP",
            constraints=[{"type": "eq", "fun": lambda w: row @ w - total}],
            options={"maxiter": 500, "ftol": 1e-15},
        )
    w = problem.regularizer.prox(found.x, 1.0) if np.isfinite(found.x).all() else start
    return w if problem.objective(w) < problem.objective(start) else start


def looked_at(seed):
    """Return what the problem is, and for points on the way: gap, bound, bound without steps from w, |F| there."""
    problem, kind = random_problem(seed)
    start = problem.start(None)
    best = lowest(problem, start)
    best_certificate = stoic.certify(problem, best)
    rows = []
    for share in POINTS:
        w = problem.regularizer.prox(start + share * (best - start), 0.0)
        value = problem.objective(w)
        certificate = stoic.certify(problem, w)
        size = max(abs(value), abs(problem.objective(start)), problem.objective(start) - problem.objective(best))
        rows.append((share, value - problem.objective(best), certificate.bound, duality_gap(problem, w), size))
    return seed, kind, best_certificate.bound, rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--loss", choices=LOSSES, help="only the problems with this one")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.problems)
    if given.loss is not None:
        seeds = [seed for seed in seeds if random_problem(seed)[1][0] == given.loss]
    found = joblib.Parallel(n_jobs=given.jobs, batch_size=50)(joblib.delayed(looked_at)(seed) for seed in seeds)
    table = [(seed, kind, *row) for seed, kind, _, rows in found for row in rows]
    fails = [row for row in table if min(row[4], row[5]) < row[3] - ROUNDING * row[6]]
    print(f"{len(found)} problems, {len(table)} points: {len(fails)} bounds below the gap")
    for row in fails[:20]:
        print("  fails:", row)
    print(f"{sum(math.isinf(row[4]) for row in table)} bounds are infinite")
    for i, name in enumerate(("loss", "outer", "penalty")):
        for kind in sorted({row[1][i] for row in table}):
            chosen = [row for row in table if row[1][i] == kind]
            report(f"{name} {kind}", chosen)
    for share in POINTS:
        report(f"way {share:g}", [row for row in table if row[2] == share])


def report(name, rows):
    """Print how loose the bounds are: over gaps that are more than rounding, and at the optimum over F."""
    ratios, bare = (np.array([row[i] / row[3] for row in rows if row[3] > 1e-9 * row[6]]) for i in (4, 5))
    ends = [row[4] / row[6] for row in rows if row[2] == 1.0 and row[6] > 0.0]
    if ratios.size:
        print(
            f"{name:<20} bound/gap median {np.median(ratios):7.4g}, 0.99 {np.quantile(ratios, 0.99):7.3g}, "
            f"worst {ratios.max():8.3g}; without steps from w {np.median(bare):7.3g}",
            end="",
        )
    if ends:
        print(f"; at the optimum bound/F 0.99 {np.quantile(ends, 0.99):.1g}, worst {max(ends):.1g}", end="")
    print(flush=True)


if __name__ == "__main__":
    main()
