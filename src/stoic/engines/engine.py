"""The protocol of engines, the chunks of steps that they run, and the statuses in which a run ends."""

from enum import Enum
from typing import Any, NamedTuple, Protocol

from numpy.random import Generator

from stoic.inners.metered import Metered
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solvers.base import AnySolver


class Status(Enum):
    """The reason why a solve stopped; the value is a sentence for the user."""

    FINISHED = "Every step of the plan was taken."
    BUDGET_SPENT = "The sample budget does not allow another step."
    PLAN_CUT = "The sample budget ended before the plan did."
    STEPS_SPENT = "The steps ended before the optimum was known to be reached."
    CONVERGED = "The answer moved less than tol at three evaluations in a row."
    TIME_LIMIT = "max_seconds have passed."
    STOPPED = "The callback asked to stop."
    INTERRUPTED = "Interrupted from the keyboard; the answer is the one reached so far."
    DIVERGED = "The iterates became infinite or NaN, or ended above the start; the answer is the last finite one."

    @property
    def is_success(self) -> bool:
        """Whether the answer is what the settings promise."""
        return self in {Status.FINISHED, Status.BUDGET_SPENT, Status.CONVERGED}


class Chunk(NamedTuple):
    """A run at a chunk boundary: its state, the counts so far, and why it ended (None: it has not).

    `watched` counts the estimates (batches or samples) that could have been truncated.
    """

    state: Any
    n_steps: int = 0
    watched: int = 0
    truncated_y: int = 0
    truncated_z: int = 0
    stage: int = 0
    ending: Status | None = None


class Limits(NamedTuple):
    """The end of a chunk: the first step that reaches `samples`, a number of `steps`, or a time."""

    samples: int
    steps: int
    deadline: float


class Engine(Protocol):
    """The protocol of an engine, as `minimize` uses it."""

    def init(self, solver: AnySolver, problem: Problem, w0: Vector, rng: Generator) -> Any:
        """Return the state before the first step."""
        ...

    def run_chunk(
        self, solver: AnySolver, problem: Problem, meter: Metered, chunk: Chunk, rng: Generator, limits: Limits
    ) -> Chunk:
        """Run the steps from a chunk boundary to the next one."""
        ...

    def settled(self, solver: AnySolver, chunk: Chunk) -> Chunk:
        """Return the chunk with a state of the solver's own type, from which any engine can continue."""
        ...
