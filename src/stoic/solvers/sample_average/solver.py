"""`SampleAverage`: the robust sample average of draws that are kept."""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from numpy.random import Generator

from stoic.checks import Count
from stoic.errors import IncompatibleParts
from stoic.inners.metered import Metered
from stoic.inners.threads import one_blas_thread
from stoic.pilot import Pilot
from stoic.pilot.comparing import rise
from stoic.pilot.fixed_sample import Pooled, make_sample
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solvers.base import UNBOUNDED, Info, Settings, method
from stoic.solvers.sample_average.curvature import Curvature
from stoic.solvers.sample_average.draws import Drawing, Found, KeptDraws, batch_sizes, minimum_on_draws
from stoic.solvers.sample_average.rows import minimum_on_rows, row_length, takes_rows

_FIRST, _FIRST_ROWS = 32, 4096  # draws of the first sample, at least; of very many groups, rows of it, at least
_PER_VARIABLE = 4  # rows of the first sample for each variable
_MOST_FIRST = 10_000
_FALSE_ALARM = 1e-4  # the probability that an answer is said to be above the start that is level with it
_ENTRIES, _FEWEST_KEPT = 1 << 25, 1000  # numbers of the samples that are kept at a time, and draws


class SampleAverageState(NamedTuple):
    """The minimum w on the draws that are kept; the steps, all draws, and the mean answer of earlier chunks.

    `clipped` is the share of samples that were clipped, `curvature` an approximation of ∇²F where it is measured;
    stuck: no step along the derivatives lowers F. `risen` is by how much the answer to the draws before the last
    ones lies above the `start` on these, where that is beyond doubt.
    """

    w: Vector
    t: int = 0
    n_draws: int = 0
    kept: tuple[Drawing, ...] = ()
    n_kept: int = 0
    before: Vector | None = None
    clipped: float = 0.0
    curvature: Curvature | None = None
    is_stuck: bool = False
    start: Vector | None = None
    risen: float = 0.0

    @property
    def n_before(self) -> int:
        """The draws of earlier chunks."""
        return self.n_draws - self.n_kept

    @property
    def answer(self) -> Vector:
        """The answers of all chunks, averaged by their draws."""
        if self.before is None:
            return self.w
        return self.before + (self.n_kept / self.n_draws) * (self.w - self.before)


@method("sample-average")
@dataclass(frozen=True)
class SampleAverage(Settings):
    r"""The robust sample average: each sample is drawn once, kept, and evaluated as often as it takes.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)`; samples of g and ∇g need second moments only.

    **Algorithm.** The draws double from step to step. After each doubling, Newton's method minimizes, from the
    last answer on,

    .. math:: f(\hat g(w)) + r(w), \qquad \hat g(w) = \tfrac1n \textstyle\sum_k \hat g(w; \xi_k),

    where the hat stands for truncation as in (4) and (5), sample by sample around a robust reference at the last
    answer: what is farther from it than :math:`\kappa \sqrt n` robust deviations is moved to that distance. Slopes
    and losses of a linear model are clipped by weights of its rows, values and Jacobians of other parts one by
    one. Second derivatives are exact where the parts have them (see `Newton`), else differences on a part of the
    draws, with secant updates. Where more is drawn than memory should hold, the draws are cut into chunks, and the
    answers of the chunks are averaged.

    **Guarantee.** None is proven. Without truncation it is the sample average, whose gap is
    :math:`\mathrm{tr}(H^{-1} \Sigma)/(2n)` to first order, and no method does better in the limit; with levels
    that grow like the root of n truncation costs less than that order wherever second moments exist, and no single
    sample moves a mean by more than a fifth of its standard error.

    **When to use it.** Where samples are what costs: it is the default for streams, and for data of which the
    budget allows a part only. Memory holds what was drawn, up to some hundred megabytes.

    Parameters
    ----------
    n_draws : int
        The draws that are planned; by default what the budget allows.
    everything : bool, default False
        Whether the sample is all data, drawn at once: nothing is then truncated, and the answer is the optimum of
        the data.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> def value(w, x):
    ...     return np.stack([((w - x) ** 2).sum(axis=1), ((w + 2.0 * x) ** 2).sum(axis=1)], axis=1)
    >>> def jacobian(w, x):
    ...     return np.stack([2.0 * (w - x), 2.0 * (w + 2.0 * x)], axis=1)
    >>> def draw(size, rng):
    ...     return 1.0 + rng.standard_t(2.5, (size, 2))
    >>> stream = stoic.FunctionInner(value, jacobian, shape=(2, 2), draw=draw)
    >>> problem = stoic.Problem(stream, stoic.LogSumExp(4.0))
    >>> stoic.minimize(problem, "sample-average", budget=20_000, seed=0).w.round()
    array([-2., -2.])
    """

    n_draws: Count = UNBOUNDED
    everything: bool = False

    @property
    def minimizes_draws(self) -> bool:
        """Whether the answer is the minimum over the draws."""
        return True

    def tuned(self, pilot: Pilot) -> "SampleAverage":  # noqa: ARG002 - nothing is open
        """Return the solver as it is."""
        return self

    def for_problem(self, problem: Problem, budget: int, engine: str = "auto") -> "SampleAverage":  # noqa: ARG002
        """Return the solver with the draws that a budget allows as its plan."""
        if self.n_draws < UNBOUNDED or self.everything:
            return self
        return replace(self, n_draws=max(1, budget // problem.inner.cost(1)))

    def planned_samples(self, inner: Any) -> int:
        """Return the samples of all draws."""
        return int(inner.n_samples if self.everything else inner.cost(1) * self.n_draws)

    def check(self, problem: Problem) -> None:
        """Raise `IncompatibleParts` if all data are asked for of a stream."""
        if self.everything and problem.inner.n_samples is None:
            raise IncompatibleParts(
                "SampleAverage(everything=True) needs a finite sum; leave it out for a stream."
            )

    def finished(self, state: SampleAverageState) -> bool:
        """Whether all draws have been used."""
        return state.n_draws >= (1 if self.everything else self.n_draws)

    def fell_short(self, state: SampleAverageState) -> bool:
        """Whether no step along the derivatives lowers F where they promise it."""
        return state.is_stuck

    def output(self, state: SampleAverageState) -> Vector:
        """Return the minimum on the draws at hand, averaged with those of earlier chunks."""
        return state.answer

    def init(self, problem: Problem, w0: Vector, rng: Generator) -> SampleAverageState:  # noqa: ARG002
        """Start at w0, without a draw."""
        return SampleAverageState(w0, start=w0)

    def risen(self, state: SampleAverageState) -> float:
        """Return by how much F has risen, where draws that came after an answer leave no doubt of it, else 0."""
        return state.risen

    def step(self, problem: Problem, state: SampleAverageState, rng: Generator) -> tuple[SampleAverageState, Info]:
        """Double the draws, and minimize on them."""
        with one_blas_thread():  # more would wait for each other over matrices as small as these
            return self._whole(problem, state) if self.everything else self._doubled(problem, state, rng)

    def _doubled(
        self, problem: Problem, state: SampleAverageState, rng: Generator
    ) -> tuple[SampleAverageState, Info]:
        most = _room(problem)
        if state.n_kept >= most:
            state = state._replace(before=state.answer, kept=(), n_kept=0)
        is_linear, size = takes_rows(problem), self._next_size(problem, state, most)
        sizes = [size] if is_linear else batch_sizes(problem, size)
        drawn = tuple((problem.inner.draw(n, rng), n) for n in sizes)
        kept, n_kept, n_draws = (*state.kept, *drawn), state.n_kept + size, state.n_draws + size
        ends = {"is_first": state.n_draws == 0, "is_last": n_draws >= self.n_draws or n_kept >= most}
        risen = _risen(problem, drawn, state) if n_draws >= self.n_draws else 0.0
        if is_linear:
            found = Found(*minimum_on_rows(problem, kept, state.w, rng, **ends))
        else:
            found = minimum_on_draws(KeptDraws(problem, kept), state.w, state.curvature, **ends)
        info = Info(watched=size, truncated_z=round(found.clipped * size))
        new = SampleAverageState(found.w, state.t + 1, n_draws, kept, n_kept, state.before, *found[1:])
        return new._replace(start=state.start, risen=risen), info

    def _whole(self, problem: Problem, state: SampleAverageState) -> tuple[SampleAverageState, Info]:
        """Minimize over all data."""
        n = problem.inner.n_samples or 1
        kept = ((problem.inner.everything(), n),)
        draws = KeptDraws(problem, kept, is_whole=True)
        found = minimum_on_draws(draws, state.w, None, is_first=True, is_last=True)
        return SampleAverageState(found.w, state.t + 1, n, kept, n, None, *found[1:]), Info(watched=1)

    def _next_size(self, problem: Problem, state: SampleAverageState, most: int) -> int:
        """Return how many draws come next: so many that by doubling the plan ends with a whole sample."""
        inner = problem.inner
        goal = min(self.n_draws - state.n_before, most)
        left = inner.left // inner.cost(1) if isinstance(inner, Metered) else goal
        if state.n_before:
            size = goal - state.n_kept
        else:
            reached = max(state.n_kept, _first_size(problem) / 2.0)
            fewest = int(state.n_kept == 0 and goal >= 2 * _FIRST)  # what comes later judges the first answer
            doublings = max(fewest, math.ceil(math.log2(goal / reached)) - 1)
            size = max(1, math.ceil(goal / 2**doublings) - state.n_kept)
        return max(1, min(size, left))


def _first_size(problem: Problem) -> int:
    """Return the draws of a sample that is not too small for its variables."""
    p, d = problem.inner.shape
    fewest = min(_FIRST, max(2, _FIRST_ROWS // p))
    return max(fewest, min(_PER_VARIABLE * d // p, _MOST_FIRST))


def _room(problem: Problem) -> int:
    """Return how many draws may be kept."""
    return max(_FEWEST_KEPT, int(_ENTRIES // (problem.inner.cost(1) * row_length(problem))))


def _risen(problem: Problem, drawn: tuple[Drawing, ...], state: SampleAverageState) -> float:
    """Return by how much an answer is above the start on draws that came after it, where that is beyond doubt."""
    if state.n_draws == 0 or state.start is None:
        return 0.0
    fresh = Pooled([make_sample(problem, batch, n) for batch, n in drawn])
    return rise(fresh, state.start, state.answer, _FALSE_ALARM)
