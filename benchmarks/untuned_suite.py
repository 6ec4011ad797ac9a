"""The default, untuned, beside L-BFGS on as many samples and the best of a grid of steps: gaps on many problems.

`auto` runs with N samples and five seeds; its median gap F(w) − F* is divided by the mean gap of L-BFGS (or what
takes its place under constraints) on N drawn samples, five draws, and by the median gap of the best cell of SCGD,
SCSC, ASC-PG and clipped SGD, each with the steps of a grid, chosen by the gaps themselves. F is exact: over all
data, or in closed form for streams; F* comes from SciPy. All problems were chosen before the first run.

    python benchmarks/untuned_suite.py                 # auto and L-BFGS
    python benchmarks/untuned_suite.py --rivals        # and the tuned loops: half an hour
    python benchmarks/untuned_suite.py stream huber    # only problems whose names have one of these words
"""

import argparse
import time
import warnings

import joblib
import numpy as np
from untuned_problems import cases

import stoic

SEEDS, DRAWS = 5, 5
STEPS = [float(f"{a}e{k}") for k in range(-6, 2) for a in (1, 3)]


def run(case, method, seed):
    """Return the gap, the result and the seconds of a solve."""
    began = time.perf_counter()
    with np.errstate(all="ignore"):
        result = stoic.minimize(case.problem, method, budget=case.budget, w0=case.w0, seed=seed)
    return case.gap(result.w), result, time.perf_counter() - began


def rivals():
    """Yield the cells of the grid."""
    for step in STEPS:
        yield f"scgd {step:g}", stoic.SCGD(steps=stoic.PowerLaw(step, 0.75))
        yield f"scsc {step:g}", stoic.SCSC(steps=stoic.PowerLaw(step))
        yield f"scsc decaying {step:g}", stoic.SCSC(steps=stoic.PowerLaw(step, 1.0, delay=100.0))
        yield f"asc-pg {step:g}", stoic.ASCPG(steps=stoic.PowerLaw(step, 1.0, delay=100.0))
        yield f"clipped-sgd {step:g}", stoic.ClippedSGD(step_size=step)


def tuned(case):
    """Return the name and the median gap of the best cell: all with one seed, the best five with all."""

    def gap_of(cell, seed):
        try:
            return run(case, cell, seed)[0]
        except (stoic.StoicError, FloatingPointError):
            return np.inf

    grid = list(rivals())
    once = [gap_of(cell, 0) for _, cell in grid]
    return min(
        (float(np.median([gap_of(grid[k][1], seed) for seed in range(SEEDS)])), grid[k][0])
        for k in np.argsort(once)[:5]
    )


def compare(case, with_rivals):
    """Return a line of the table."""
    warnings.simplefilter("ignore")
    runs = [run(case, "auto", seed) for seed in range(SEEDS)]
    gap = float(np.median([found for found, _, _ in runs]))
    left = gap / case.start_gap
    erm = float(np.mean([case.gap(case.sample_average(draw)) for draw in range(DRAWS)]))
    result, seconds = runs[0][1], float(np.median([s for _, _, s in runs]))
    loops = tuned(case) if with_rivals else None
    return case.name, case.start_gap, gap, erm, left, result, seconds, loops


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    chosen = [case for case in cases() if not given.words or any(word in case.name for word in given.words)]
    tasks = joblib.Parallel(n_jobs=given.jobs, return_as="generator")(
        joblib.delayed(compare)(case, given.rivals) for case in chosen
    )
    ratios, floors = [], []
    print(f"{'problem':38s}{'at start':>9s}{'auto':>9s}{'ERM':>9s}{'ratio':>7s}{'tuned':>9s}{'ratio':>7s} seconds")
    for name, start, gap, erm, left, result, seconds, loops in tasks:
        floor = 1e-12 * start  # below it there is nothing to compare
        ratios.append(max(gap, floor) / max(erm, floor))
        told = f"{loops[0]:9.2g}{max(gap, floor) / max(loops[0], floor):7.2f}" if loops else " " * 16
        if loops:
            floors.append(max(gap, floor) / max(loops[0], floor))
        wrong = " SUCCESS WITH MORE THAN 1% LEFT" if left > 0.01 and result.success else ""
        print(
            f"{name:38s}{start:9.2g}{gap:9.2g}{erm:9.2g}{ratios[-1]:7.2f}{told} {seconds:6.2f} "
            f"{type(result.solver).__name__} {result.status.name}{wrong} {loops[1] if loops else ''}",
            flush=True,
        )
    print(f"over ERM: largest {max(ratios):.2f}, geometric mean {np.exp(np.mean(np.log(ratios))):.2f}")
    if floors:
        print(f"over the best tuned: largest {max(floors):.2f}, {np.exp(np.mean(np.log(floors))):.2f} in the mean")


if __name__ == "__main__":
    main()
