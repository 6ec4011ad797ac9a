"""Where a nested solve stands: restarts and proxBoost run other solvers, and the innermost takes the steps."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from numpy.random import Generator

from stoic.engines.compiled.problem import NO_ANCHOR, Anchor
from stoic.engines.compiled.sparse_reference import sparse_init
from stoic.inners.group_loss import GroupLoss
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solvers.base import AnySolver
from stoic.solvers.prox_boost import ProxBoosted, ProxBoostState, anchored
from stoic.solvers.restarted import Restarted, RestartedState

Trial = tuple[int, Vector, tuple[Vector, ...]]


class Innermost(NamedTuple):
    """The solver that takes the steps, its state, and the point that its problem is anchored at."""

    solver: AnySolver
    state: Any
    anchor: Anchor


def innermost(solver: AnySolver, state: Any, anchor: Anchor = NO_ANCHOR) -> Innermost:
    """Return what takes the next step."""
    if isinstance(solver, Restarted):
        return innermost(solver.stages[state.stage], state.inner, anchor)
    if isinstance(solver, ProxBoosted):
        stage = solver.stages[state.stage]
        here = Anchor(state.center, stage.weight) if stage.weight > 0.0 else anchor
        return innermost(stage.solver, state.inner, here)
    return Innermost(solver, state, anchor)


def with_innermost(state: Any, inner: Any) -> Any:
    """Return the state with that of the solver that takes the steps replaced."""
    if isinstance(state, RestartedState | ProxBoostState):
        return state._replace(inner=with_innermost(state.inner, inner))
    return inner


def outer_stage(state: Any) -> int:
    """Return the number of the stage that is reported; 0 where there are none."""
    return state.stage if isinstance(state, RestartedState | ProxBoostState) else 0


def begun(solver: AnySolver, problem: Problem, inner: GroupLoss, w0: Vector, rng: Generator) -> Any:
    """Return ``solver.init(problem, w0, rng)``, the reference of a ROSC from sparse rows where X is sparse."""
    if isinstance(solver, Restarted):
        return RestartedState(0, begun(solver.stages[0], problem, inner, w0, rng))
    if isinstance(solver, ProxBoosted):
        return _trial(solver, problem, inner, (0, w0, ()), rng)
    return sparse_init(solver, problem, inner, w0, rng)


def started(solver: AnySolver, problem: Problem, inner: GroupLoss, state: Any, rng: Generator) -> Any:
    """Return the state with the next stage or trial begun, at every level whose running one has finished."""
    if isinstance(solver, Restarted):
        running = solver.stages[state.stage]
        if not running.finished(state.inner):
            return state._replace(inner=started(running, problem, inner, state.inner, rng))
        k, answer = state.stage + 1, running.output(state.inner)
        return RestartedState(k, begun(solver.stages[k], problem, inner, answer, rng), answer)
    if isinstance(solver, ProxBoosted):
        stage = solver.stages[state.stage]
        if not stage.solver.finished(state.inner):
            problem = anchored(problem, state.center, stage.weight)
            return state._replace(inner=started(stage.solver, problem, inner, state.inner, rng))
        return _trial(solver, problem, inner, solver.after(state), rng)
    return state


def _trial(solver: ProxBoosted, problem: Problem, inner: GroupLoss, plan: Trial, rng: Generator) -> ProxBoostState:
    k, center, answers = plan
    stage = solver.stages[k]
    problem = anchored(problem, center, stage.weight)
    return ProxBoostState(k, center, answers, begun(stage.solver, problem, inner, center, rng))


def parts(solver: AnySolver, *, is_anchored: bool = False) -> Iterator[AnySolver]:
    """Walk through all solvers that take steps; a proxBoost on an anchored problem counts as one."""
    if isinstance(solver, Restarted):
        for stage in solver.stages:
            yield from parts(stage, is_anchored=is_anchored)
    elif isinstance(solver, ProxBoosted) and not is_anchored:
        for boosted in solver.stages:
            yield from parts(boosted.solver, is_anchored=boosted.weight > 0.0)
    else:
        yield solver
