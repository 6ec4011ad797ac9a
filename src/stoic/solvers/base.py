"""The protocol of solvers, and their base classes: frozen settings with `tuned`, `init`, `step` and `output`."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar

from numpy.random import Generator

from stoic.checks import check_annotated, check_positive, check_real
from stoic.errors import InvalidParameter
from stoic.means import MeanEstimator
from stoic.pilot import Pilot
from stoic.problem import Problem
from stoic.protocols import AnyInner, Vector

State = TypeVar("State")

UNBOUNDED = 2**62
"""More steps than any budget allows."""


class _Auto:
    """The value of a setting that is chosen from a pilot on the data."""

    def __repr__(self) -> str:
        return "AUTO"

    def __reduce__(self) -> str:
        return "AUTO"  # copied or pickled, it is still this one


AUTO: Any = _Auto()


class Info(NamedTuple):
    """Facts about a step that only an observer needs.

    Its stage, how many samples could have been truncated, and in how many of them y and z were.
    """

    stage: int = 0
    watched: int = 0
    truncated_y: int = 0
    truncated_z: int = 0


class Method(Protocol):
    """A method of `minimize`: a solver, or a recipe that a pilot turns into one."""

    @property
    def needs_pilot(self) -> bool:
        """Whether a setting is still to be chosen."""
        ...

    def check(self, problem: Problem) -> None:
        """Raise if the problem is outside the method's assumptions, or given settings do not fit."""
        ...

    def tuned(self, pilot: Pilot) -> "AnySolver":
        """Return the solver with every open setting chosen from the pilot."""
        ...


class Solver(Method, Protocol[State]):
    """An algorithm: it never loops, prints, times, or knows how data are stored."""

    def init(self, problem: Problem, w0: Vector, rng: Generator) -> State:
        """Return the state before the first step."""
        ...

    def step(self, problem: Problem, state: State, rng: Generator) -> tuple[State, Info]:
        """Return the state after one more step; `state` itself stays as it was."""
        ...

    def finished(self, state: State) -> bool:
        """Whether all planned steps have been taken."""
        ...

    def output(self, state: State) -> Vector:
        """Return the answer: average, last, …, as the source says."""
        ...


AnySolver = Solver[Any]

METHODS: dict[str, Callable[[], Method]] = {}
"""What each method string stands for: settings that are still open, to be tuned by a pilot."""

_Factory = TypeVar("_Factory", bound=Callable[..., Any])


def method(name: str) -> Callable[[_Factory], _Factory]:
    """Register a solver class, or a function that makes one, under a method string."""

    def register(factory: _Factory) -> _Factory:
        METHODS[name] = factory
        return factory

    return register


@dataclass(frozen=True)
class PowerLaw:
    r"""The sequence :math:`a_k = \text{start} \cdot (1 + k / \text{delay})^{-\text{power}}`, k = 0, 1, ….

    Examples
    --------
    >>> PowerLaw(start=1.0, power=0.5).at(3)
    0.5
    """

    start: float
    power: float = 0.0
    delay: float = 1.0

    def __post_init__(self) -> None:
        check_positive("start", self.start)
        check_real("power", self.power, low=0.0)
        check_positive("delay", self.delay)

    def at(self, k: int) -> float:
        """Return a_k."""
        return float(self.start * (1.0 + k / self.delay) ** -self.power)


def _check_weights(name: str, value: object) -> None:
    if not isinstance(value, PowerLaw) or value.start > 1.0:
        raise InvalidParameter(f"{name}={value!r} is not a PowerLaw with start <= 1.")


def _check_steps(name: str, value: object) -> None:
    if not isinstance(value, PowerLaw):
        raise InvalidParameter(f"{name}={value!r} is not a PowerLaw; use PowerLaw({value!r}) for a constant step.")


def _check_mean(name: str, value: object) -> None:
    if not hasattr(value, "n_blocks"):
        raise InvalidParameter(f"{name}={value!r} is not a mean estimator such as SmallestBall(0.05).")


def check_method(name: str, value: object) -> None:
    """Raise `InvalidParameter` unless `value` is a solver's settings or a recipe."""
    if isinstance(value, type) or not hasattr(value, "tuned"):
        raise InvalidParameter(f"{name}={value!r} is not a solver's settings, such as MSCG().")


Steps = Annotated[PowerLaw, _check_steps]
"""A sequence of step sizes."""

Weights = Annotated[PowerLaw, _check_weights]
"""A sequence of weights of an average, 1 at most."""

RobustMean = Annotated[MeanEstimator, _check_mean]
"""A mean of a batch."""

Radius = Annotated[float, lambda name, value: check_real(name, value, low=1e-300)]
"""Of a ball; may be infinite."""

Weight = Annotated[float, lambda name, value: check_real(name, value, low=0.0, high=1.0)]
"""Of the newest term in an average."""


class Settings:
    """Base of all solvers: settings are checked by their annotations, and `AUTO` ones come from a pilot."""

    def __post_init__(self) -> None:
        for item in fields(self):  # type: ignore[arg-type]
            if (value := getattr(self, item.name)) is not AUTO:
                check_annotated(item.name, value, item.type)

    @property
    def needs_pilot(self) -> bool:
        """Whether a setting is still to be chosen."""
        return any(getattr(self, item.name) is AUTO for item in fields(self))  # type: ignore[arg-type]

    @property
    def uses_all_data(self) -> bool:
        """Whether each step goes through all data, so that a duality gap costs little beside it."""
        return False

    def looks_often(self, problem: Problem) -> bool:  # noqa: ARG002
        """Whether a duality gap costs little beside a step; else the last record alone has one."""
        return True

    def fell_short(self, state: Any) -> bool:  # noqa: ARG002
        """Whether the steps have ended before what the method promises was reached."""
        return False

    def check(self, problem: Problem) -> None:
        """Accept every problem; solvers with assumptions of their own say so here."""


class Stepwise(Settings):
    """A solver that takes `n_steps` steps."""

    n_steps: int

    def finished(self, state: Any) -> bool:
        """Whether all steps have been taken."""
        return bool(state.t >= self.n_steps)


def has_plan(method: Any) -> bool:
    """Whether a method came with its number of steps, and does not take what the budget allows."""
    stages = getattr(method, "stages", None)
    if stages is not None:
        return all(has_plan(getattr(stage, "solver", stage)) for stage in stages)
    lengths = [getattr(method, name, 1) for name in ("n_steps", "n_stages", "n_draws")]
    return (
        (hasattr(method, "n_steps") or hasattr(method, "n_draws"))
        and AUTO not in lengths
        and UNBOUNDED not in lengths
    )


def plan_cost(solver: Any, inner: AnyInner) -> int | None:
    """Return the samples that all steps of a solver draw; None where one of them does not say."""
    stages = getattr(solver, "stages", None)
    if stages is None:
        return solver.planned_samples(inner) if hasattr(solver, "planned_samples") else None
    costs = [(getattr(one, "n_trials", 1), plan_cost(getattr(one, "solver", one), inner)) for one in stages]
    return None if any(cost is None for _, cost in costs) else sum(n * (cost or 0) for n, cost in costs)


class Averaging(Stepwise):
    """A solver that answers with the average of w_1 … w_t."""

    def output(self, state: Any) -> Vector:
        """Return the average of w_1 … w_t."""
        average: Vector = state.average
        return average


class Recipe(Settings):
    """Settings that `tuned` turns into the solver that runs, such as `Restarted` of many stages."""

    @property
    def needs_pilot(self) -> bool:
        """A recipe always does: it is not a solver yet."""
        return True


def either(setting: Any, chosen: Any) -> Any:
    """Return the setting, or what was chosen for it where it is still open."""
    return chosen if setting is AUTO else setting


def planned(n_steps: int, affordable: int) -> int:
    """Return the number of steps asked for, or what the budget allows where none was."""
    return affordable if n_steps == UNBOUNDED else n_steps


def running_mean(average: Vector, w: Vector, count: int) -> Vector:
    """Return the mean of `count` vectors from that of the first count − 1 and the last one."""
    return w if count == 1 else average + (w - average) / count


def mean_value(inner: AnyInner, w: Vector, batch: Any, size: int, mean: MeanEstimator) -> Vector:
    """Return the estimate of g(w) that `mean` makes of a batch."""
    return mean.combine(inner.value(w, batch, mean.n_blocks(size)))


def mean_vjp(inner: AnyInner, w: Vector, batch: Any, size: int, mean: MeanEstimator, q: Vector) -> Vector:
    """Return zᵀq for the estimate z of ∇g(w) that `mean` makes of a batch."""
    blocks = mean.n_blocks(size)
    if blocks == 1:
        return inner.vjp(w, batch, q)
    return mean.combine(inner.jacobian(w, batch, blocks)).T @ q
