"""The variables in which a run is solved: those of the problem, or others in which its columns are alike."""

import logging
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from stoic.errors import InvalidParameter
from stoic.pilot import Metric, PilotRows, learned_metric
from stoic.pilot.fixed_sample import make_sample
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solvers.base import AUTO

_log = logging.getLogger("stoic")

Scale: TypeAlias = Literal["auto"] | ArrayLike | None
"""What `minimize` takes as scale."""

_IN_UNITS = ("step_size", "steps", "radius", "levels", "clip", "smoothness", "mu")


@dataclass(frozen=True, eq=False)
class Rescaled:
    """A solver, and the variables in which it ran; as a method of `minimize` it solves in these again.

    It has the attributes of the solver besides its own.
    """

    solver: Any
    metric: Metric

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "solver" not in vars(self):
            raise AttributeError(name)
        return getattr(self.solver, name)


class Variables:
    """The map between w and the variables v of a run, which is none at first."""

    def __init__(self, metric: Metric | None = None) -> None:
        self.metric = metric
        self._last: tuple[Vector, Vector] | None = None

    def into(self, w: Vector) -> Vector:
        """Return v."""
        return w if self.metric is None else self.metric.into(w)

    def out_of(self, v: Vector) -> Vector:
        """Return w, the same array for the same v."""
        if self.metric is None:
            return v
        if self._last is None or self._last[0] is not v:
            self._last = v, self.metric.out_of(v)
        return self._last[1]

    def rows(self, problem: Problem, rows: PilotRows) -> PilotRows:
        """Return rows of a pilot as samples of the problem in v."""
        if self.metric is None:
            return rows
        return PilotRows(*([make_sample(problem, one.batch, one.size) for one in some] for some in rows))


def chosen_metric(scale: Scale, method: Any, problem: Problem, rows: PilotRows) -> Metric | None:
    """Return the metric that was asked for, or for "auto" the one that a pilot speaks for, if there is one.

    A setting in the units of w, such as a step size, is one of w itself: where a method comes with one, nothing is
    scaled.
    """
    if isinstance(scale, Metric):
        return scale
    if scale is None:
        return None
    if not isinstance(scale, str):
        return Metric(np.asarray(scale, dtype=np.float64))
    if not rows.parts:
        return None
    if _has_units(method):
        metric, reason = None, "settings were given in its units"
    else:
        metric, reason = learned_metric(problem, rows.parts)
    if metric is None:
        _log.info("solved in w itself: %s", reason)
    else:
        spread = float(metric.scale.max() / metric.scale.min())
        centered = "" if metric.center is None else ", columns centered"
        _log.info("solved in scaled variables: scales a factor of %.2g apart%s", spread, centered)
    return metric


def check_scale(scale: object) -> None:
    """Raise `InvalidParameter` unless scale is "auto", None or positive numbers."""
    if scale is None or isinstance(scale, Metric) or (isinstance(scale, str) and scale == "auto"):
        return
    try:
        given = np.asarray(scale, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.zeros(1)
    if given.ndim != 1 or not ((given > 0.0) & (given < np.inf)).all():
        raise InvalidParameter(
            f'scale={scale!r} is neither "auto" nor None nor one positive number for each column.'
        )


def _has_units(method: Any) -> bool:
    """Whether a method comes with settings in the units of w."""
    parts = getattr(method, "stages", None)
    if isinstance(parts, tuple):
        return any(_has_units(getattr(part, "solver", part)) for part in parts)
    return any(getattr(method, name, AUTO) is not AUTO for name in _IN_UNITS)
