"""Measurements of ``stoic bench``: the compiled engine against scikit-learn, SciPy and the plain engine."""

import contextlib
import tracemalloc
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import TypeAlias, cast

from stoic.checks import check_count
from stoic.errors import IncompatibleParts, InvalidParameter, MissingDependency, SolveFailed
from stoic.means import SmallestBall
from stoic.problem import Problem
from stoic.protocols import Regularizer
from stoic.regularizers import L1, L2, ElasticNet
from stoic.solvers.restarted import Restarted
from stoic.solvers.rosc import ROSC
from stoic.solvers.tracked_rosc import MEMORIES, TrackedROSC
from stoic.studies.bench.report import Measurement, MetricOutcome, Report
from stoic.studies.bench.targets import TARGETS, BenchTarget
from stoic.studies.bench.workloads import (
    ALPHA,
    L1_RATIO,
    LOOSE,
    N_GROUPS,
    SHORT_STEP,
    WORKLOADS,
    BenchData,
    Workload,
    problem_of,
    rosc,
    seconds_per_row,
    share_truncated,
    solve,
    truncating,
)
from stoic.studies.shared.timing import Measure, Range, exponent, machine, seconds_of, take_turns, versions

BenchProgress: TypeAlias = Callable[[int, str], None]
_LEAST_EPOCHS = 10


def run_bench(
    size: str = "small",
    *,
    repetitions: int = 5,
    only: Iterable[str] = (),
    progress: BenchProgress | None = None,
    callback: Callable[[Report], None] | None = None,
) -> Report:
    """Measure the metrics of `TARGETS`, each as the median over repetitions.

    Within a repetition the competitors take turns, and a ratio is taken of neighbors. A timing is of the steady
    state: without our reference batch, and without the checks of the data in scikit-learn's `fit`.

    Parameters
    ----------
    size : "small" or "full"
        Small is over in seconds and shows that everything runs; only full is compared with what must be.
    repetitions : int, default 5
    only : names of metrics, optional
        By default all.
    progress : function of the repetitions done and the name of the metric, optional
        There are ``repetitions`` for each metric.
    callback : function of a report, optional
        Called after each metric with the report so far, the new metric last.

    Returns
    -------
    Report
        Ctrl-C returns the metrics measured so far; the others, and the one at hand, are ``pending``.

    Raises
    ------
    InvalidParameter
        If there is no such size or metric.

    Notes
    -----
    A metric whose parts the compiled engine does not take, or whose competitor is not installed, is reported
    with the reason; so is one whose solve fails.
    """
    repetitions = check_count("repetitions", repetitions)
    if size not in WORKLOADS:
        raise InvalidParameter(f"size={size!r} is unknown; use one of {', '.join(WORKLOADS)}.")
    wanted = tuple(only)
    for name in wanted:
        if name not in TARGETS:
            raise InvalidParameter(f"only={name!r} is not a figure; figures: {', '.join(TARGETS)}.")
    load = replace(WORKLOADS[size])  # a copy, so that its data are freed in the end
    names = tuple(name for name in TARGETS if not wanted or name in wanted)
    report = Report(size, repetitions, (), machine(), versions(), pending=names)
    with contextlib.suppress(KeyboardInterrupt):  # what is pending says that it came
        for i, name in enumerate(names):
            turns = _Turns(i * repetitions, repetitions, name, progress or (lambda _done, _name: None))
            report = report.with_outcome(_outcome(TARGETS[name], load, turns))
            if callback is not None:
                callback(report)
    return report


class _Turns:
    """Repetitions of one metric, and the bar that shows them."""

    def __init__(self, done: int, repetitions: int, name: str, progress: BenchProgress) -> None:
        self.done, self.repetitions, self.name, self.progress = done, repetitions, name, progress
        progress(done, name)

    def take(self, competitors: Mapping[str, Measure]) -> dict[str, list[float]]:
        return take_turns(competitors, self.repetitions, self.tick)

    def tick(self) -> None:
        self.done += 1
        self.progress(self.done, self.name)

    def ratio(self, ours: Measure, theirs: Measure, **detail: float) -> Measurement:
        """Measure ours over theirs."""
        seconds = self.take({"ours": ours, "theirs": theirs})
        values = [a / b for a, b in zip(seconds["ours"], seconds["theirs"], strict=True)]
        return Measurement(
            values, {f"seconds_{name}": Range.of(seconds[name]).median for name in seconds} | detail
        )

    def growth(self, x: Sequence[float], measures: Sequence[Measure]) -> Measurement:
        """Measure the exponent in x."""
        seconds = self.take({f"{place:g}": measure for place, measure in zip(x, measures, strict=True)})
        values = [exponent(x, y) for y in zip(*seconds.values(), strict=True)]
        return Measurement(
            values, {f"seconds_at_{place}": Range.of(taken).median for place, taken in seconds.items()}
        )


def _outcome(target: BenchTarget, load: Workload, turns: _Turns) -> MetricOutcome:
    try:
        return MetricOutcome(target, _METRICS[target.name](load, turns))
    except (IncompatibleParts, MissingDependency) as missing:
        return MetricOutcome(target, reason=str(missing))
    except (SolveFailed, MemoryError) as failure:  # the other metrics are worth having
        return MetricOutcome(target, reason=str(failure), failed=True)


def _sgd(data: BenchData, penalty: str, entries: int) -> Measure:
    """Return a measure of scikit-learn's seconds per row, over as many epochs as read `entries`.

    What `fit` does before its first epoch, above all its checks of the data, is subtracted.
    """
    try:
        from sklearn.linear_model import SGDRegressor  # noqa: PLC0415 - optional
    except ImportError:
        raise MissingDependency("scikit-learn is not installed; run pip install scikit-learn.") from None
    n = data.X.shape[0]
    epochs = max(_LEAST_EPOCHS, ceil(entries / (n * data.row_length)))
    settings = {"penalty": penalty, "alpha": ALPHA, "l1_ratio": L1_RATIO, "average": True, "fit_intercept": False}
    rate = {"learning_rate": "constant", "eta0": 0.01, "tol": None, "random_state": 0}

    def fit(max_iter: int) -> float:
        return seconds_of(lambda: SGDRegressor(**settings, **rate, max_iter=max_iter).fit(data.X, data.y))

    return lambda: (fit(1 + epochs) - fit(1)) / (epochs * n)


def _rosc(
    data: BenchData, entries: int, regularizer: Regularizer | None = None, *, m: int = 1, p: int = N_GROUPS
) -> Measure:
    """Return a measure of our seconds per row, over as many rows as hold `entries`."""
    problem = problem_of(data, regularizer, p=p)
    solver = rosc(_rows(data, entries), problem, m=m)
    return lambda: seconds_per_row(problem, solver)


def _rows(data: BenchData, entries: int) -> int:
    return ceil(entries / data.row_length)


def _over_sgd(regularizer: Regularizer, penalty: str, m: int = 1) -> Callable[[Workload, _Turns], Measurement]:
    def measure(load: Workload, turns: _Turns) -> Measurement:
        ours = _rosc(load.text, load.entries, regularizer, m=m)
        return turns.ratio(ours, _sgd(load.text, penalty, load.entries))

    return measure


def _dense_data(load: Workload, turns: _Turns) -> Measurement:
    data = load.dense()
    return turns.ratio(_rosc(data, load.entries), _sgd(data, "l2", load.entries))


def _tracked(load: Workload, turns: _Turns) -> Measurement:
    problem = problem_of(load.text)
    plain = rosc(_rows(load.text, load.entries), problem)
    tracked = TrackedROSC(**vars(plain) | {"weight": MEMORIES / plain.n_steps, "truncates": "samples"})
    return turns.ratio(lambda: seconds_per_row(problem, tracked), lambda: seconds_per_row(problem, plain))


def _nonzero(load: Workload, turns: _Turns) -> Measurement:
    data, w = load.text, load.data.w_true
    ours, products = _rosc(data, load.entries), ceil(load.entries / data.X.nnz)

    def multiply() -> None:
        for _ in range(products):
            data.X @ w

    return turns.ratio(lambda: ours() / data.row_length, lambda: seconds_of(multiply) / (products * data.X.nnz))


def _dense_step(load: Workload, turns: _Turns) -> Measurement:
    data, problem = load.text, problem_of(load.text)
    # The plain engine stores the Jacobians of all blocks of the reference, p·d numbers each.
    solver = replace(rosc(_rows(data, load.entries), problem), reference_size=26, reference_mean=SmallestBall(0.5))
    few = replace(solver, n_steps=load.plain_steps)
    return turns.ratio(
        lambda: seconds_per_row(problem, few, engine="plain"), lambda: seconds_per_row(problem, solver)
    )


def _truncated(load: Workload, turns: _Turns) -> Measurement:
    problem, rows = problem_of(load.text), _rows(load.text, load.entries)
    none = rosc(rows, problem, levels=LOOSE, step_size=SHORT_STEP)
    some = replace(truncating(problem, rows // 10), n_steps=none.n_steps)
    shares = {"share_ours": share_truncated(problem, some), "share_theirs": share_truncated(problem, none)}
    return turns.ratio(lambda: seconds_per_row(problem, some), lambda: seconds_per_row(problem, none), **shares)


def _growth_nonzeros(load: Workload, turns: _Turns) -> Measurement:
    sets = list(load.by_row_length())
    return turns.growth([data.row_length for data in sets], [_rosc(data, load.entries) for data in sets])


def _growth_d(load: Workload, turns: _Turns) -> Measurement:
    def per_nonzero(data: BenchData) -> Measure:
        per_row = _rosc(data, load.entries)
        return lambda: per_row() / data.row_length

    return turns.growth(load.widths, [per_nonzero(data) for data in load.by_width()])


def _growth_p(load: Workload, turns: _Turns) -> Measurement:
    rows = 2 * max(load.group_counts)
    measures = [_rosc(load.text, load.entries, p=p, m=rows // p) for p in load.group_counts]
    return turns.growth(load.group_counts, measures)


def _memory(solver: str | ROSC, budget: int, load: Workload, turns: _Turns) -> Measurement:
    """Measure once what is allocated during a solve: it is the same in each."""
    warm, fresh = problem_of(load.text), problem_of(load.text)  # what a solve leaves with its problem counts
    solve(warm, solver, budget)
    tracemalloc.start()
    try:
        solve(fresh, solver, budget)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    for _ in range(turns.repetitions):
        turns.tick()
    return Measurement([peak / (8.0 * fresh.inner.shape[1])], {"bytes": float(peak)})


def _memory_rosc(load: Workload, turns: _Turns) -> Measurement:
    problem = problem_of(load.text)
    solver = rosc(load.rrosc_rows // 10, problem)
    return _memory(solver, problem.inner.cost(solver.reference_size + solver.n_steps), load, turns)


def _memory_rrosc(load: Workload, turns: _Turns) -> Measurement:
    return _memory("rrosc", load.rrosc_rows, load, turns)


def _whole_call(load: Workload, turns: _Turns) -> Measurement:
    """Measure rrosc against its rows times the time per row of its longest stage: what the kernel alone takes."""
    problem: Problem = problem_of(load.text)
    result = solve(problem, "rrosc", load.rrosc_rows)
    longest = cast("ROSC", cast("Restarted", result.solver).stages[-1])
    return turns.ratio(
        lambda: seconds_of(lambda: solve(problem, "rrosc", load.rrosc_rows)) / result.samples,
        lambda: seconds_per_row(problem, longest, w0=result.w),
    )


_METRICS: dict[str, Callable[[Workload, _Turns], Measurement]] = {
    "l2-m1": _over_sgd(L2(ALPHA), "l2"),
    "l2-m4": _over_sgd(L2(ALPHA), "l2", m=4),
    "l1": _over_sgd(L1(ALPHA), "l1"),
    "elastic-net": _over_sgd(ElasticNet(ALPHA, L1_RATIO), "elasticnet"),
    "tracked": _tracked,
    "nonzero": _nonzero,
    "dense-step": _dense_step,
    "truncated": _truncated,
    "dense-data": _dense_data,
    "growth-nonzeros": _growth_nonzeros,
    "growth-d": _growth_d,
    "growth-p": _growth_p,
    "memory-rosc": _memory_rosc,
    "memory-rrosc": _memory_rrosc,
    "whole-call": _whole_call,
}
