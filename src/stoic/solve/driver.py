"""`minimize`: arguments are checked, and a run is started, advanced and asked for its result."""

import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import Literal

from numpy.random import Generator

from stoic.checks import check_count, check_positive, check_probability
from stoic.engines.choice import ENGINES
from stoic.errors import InvalidParameter, InvalidProblem
from stoic.inners.metered import BudgetSpent
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solve.progress import progress_bar
from stoic.solve.requests import check_watchers, make_generator, resolve, too_small_budget
from stoic.solve.result import Record, Result
from stoic.solve.run import Run
from stoic.solve.variables import Rescaled, Scale, check_scale
from stoic.solvers import Method
from stoic.solvers.base import UNBOUNDED

_log = logging.getLogger("stoic")

_QUIET_EVALUATIONS = 3


def minimize(
    problem: Problem,
    method: str | Method = "auto",
    budget: int = 100_000,
    *,
    w0: Vector | None = None,
    seed: int | Generator | None = None,
    delta: float = 0.05,
    observers: Mapping[str, Callable[[Vector], float]] | None = None,
    callback: Callable[[Record], None] | None = None,
    evaluate_every: int | None = None,
    tol: float | None = None,
    max_seconds: float | None = None,
    engine: Literal["auto", "plain", "compiled", "renumbered"] = "auto",
    scale: Scale = "auto",
    verbose: bool = False,
    chunk_size: int = 1000,
) -> Result:
    r"""Minimize :math:`F(w) = f(\mathrm E_\xi[g(w; \xi)]) + r(w)` with a budget of samples.

    Parameters
    ----------
    problem : Problem
        What to minimize.
    method : str or Solver, default "auto"
        A method string, whose settings are chosen by a pilot on the data, or settings such as
        ``stoic.RROSC(batch_size=8)``, of which only the open ones are.
    budget : int
        Data points ξ that may be drawn in all, the pilot and reference batches included; a batch of m from
        each of p groups costs p·m. It is never exceeded.
    w0 : ndarray of shape (d,), optional
        Where to start; by default the point of the regularizer's domain nearest to zero.
    seed : int or Generator, optional
        Same seed, same bits, whatever the observers, the verbosity and the chunk size.
    delta : float, default 0.05
        Total failure probability that a method with a confidence statement aims at.
    observers : mapping of names to functions of w, optional
        Their values go into the history; they are outside the clock.
    callback : function of a record, optional
        Called with each record of the history; raising ``StopIteration`` stops the solve.
    evaluate_every : int, optional
        Samples between two records, evaluations where all data are drawn once (`newton`); by default a fiftieth of
        the budget.
    tol : float, optional
        Stop when the answer moved by less than tol·max(1, ‖w‖) at three records in a row; records at which a
        solver had not updated its answer are passed over.
    max_seconds : float, optional
        Stop at the first step after this time on the wall clock, observers included.
    engine : {"auto", "plain", "compiled", "renumbered"}
        "plain" is the readable definition, "compiled" the same steps in kernels, at the cost of the rows drawn;
        both take the same draws and agree to rounding. "auto" compiles where that is possible and pays, and
        says in a log line where it is not possible. "renumbered" is an old name of "compiled".
    scale : "auto", None or array of shape (columns,)
        Solve in the variables w/scale, exactly. "auto" learns scales, and centers with an intercept, where rows
        are dense, columns differ and no setting is in units of w; ``result.solver`` shows them.
    verbose : bool, default False
        Show a progress bar on standard error.
    chunk_size : int, default 1000
        Steps between two looks at the progress bar and the clock.

    Returns
    -------
    Result
        With the answer ``w``, its ``status``, and the ``history``. Ctrl-C returns what was reached so far.

    Raises
    ------
    InvalidParameter
        If a setting is out of range, the method is unknown, or the budget is below one step.
    InvalidProblem
        If a function of the user's own returns NaN or infinity at an ordinary point; the message names the
        function and the sample. Where finite functions overflow since w grows without end, the status is DIVERGED.
    IncompatibleParts
        If the problem is outside the method's assumptions.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> rng = np.random.default_rng(0)
    >>> X, groups = rng.standard_normal((3000, 5)), np.arange(3000) % 3
    >>> y = X @ np.ones(5) + rng.standard_t(2.5, 3000)
    >>> problem = stoic.Problem(stoic.GroupLoss(X, y, groups), stoic.LogSumExp(10.0), stoic.L2(1e-3))
    >>> result = stoic.minimize(problem, "rrosc", budget=100_000, seed=0)
    >>> result.success, result.samples <= 100_000, result.w.round(0)
    (True, True, array([1., 1., 1., 1., 1.]))
    """
    if not isinstance(problem, Problem):
        raise InvalidProblem(f"problem={problem!r} is not a Problem; give Problem(inner, outer, regularizer).")
    budget = check_count("budget", budget)
    every = budget // 50 or 1 if evaluate_every is None else check_count("evaluate_every", evaluate_every)
    chunk_size = check_count("chunk_size", chunk_size)
    delta = check_probability("delta", delta)
    tol = None if tol is None else check_positive("tol", tol)
    deadline = math.inf
    if max_seconds is not None:
        deadline = time.perf_counter() + check_positive("max_seconds", max_seconds)
    asked = resolve(method)
    chosen = asked.for_problem(problem, budget, engine) if hasattr(asked, "for_problem") else asked
    chosen.check(problem)
    check_watchers(observers, callback)
    if engine not in ENGINES:
        raise InvalidParameter(f"engine={engine!r} is not one of {', '.join(map(repr, ENGINES))}.")
    check_scale(scale)
    if isinstance(chosen, Rescaled):
        chosen, scale = chosen.solver, chosen.metric
    run = Run(problem, budget, problem.start(w0), make_generator(seed), dict(observers or {}), callback, tol)
    try:
        with progress_bar(budget, visible=verbose) as show:
            run.start(chosen, asked, delta, engine, scale)
            is_watched = verbose or max_seconds is not None
            run.go(every, chunk_size if is_watched else UNBOUNDED, deadline, show)
    except BudgetSpent as spent:
        raise InvalidParameter(too_small_budget(budget, spent.needed, chosen)) from None
    return run.result()
