"""One run of an experiment: which it is, and how it went."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias

from stoic.studies.paper.spec import Spec

Phase: TypeAlias = Literal["grid", "trial"]
Ending: TypeAlias = Literal["finished", "diverged", "hopeless", "failed"]

HOPELESS = 1e3
"""Times the error of the zero model: a cell above that when a quarter of the budget is spent is given up."""


@dataclass(frozen=True)
class Setting:
    """What is compared on equal terms: a loss, a temperature, a regularizer, and a method."""

    loss: str
    temperature: float
    regularizer: str
    method: str


@dataclass(frozen=True)
class Run:
    """One solve: of the grid (repetition 0), or a trial with its noise."""

    phase: Phase
    setting: Setting
    alpha: float
    step: float
    repetition: int = 0

    @property
    def key(self) -> str:
        """The name under which it is stored, and from which its random numbers come."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True)
class Outcome:
    """How a run ended: its points (one record each), what it drew, and why it stopped early, if it did."""

    ending: Ending
    message: str
    samples: int = 0
    seconds: float = 0.0
    truncated_y: float = 0.0
    truncated_z: float = 0.0
    points: list[dict[str, float]] = field(default_factory=list)


def settings_of(spec: Spec) -> list[Setting]:
    """Return all settings of an experiment, those of the figures first."""
    return [
        Setting(loss, temperature, regularizer, method)
        for loss in spec.losses
        for temperature in spec.temperatures
        for regularizer in spec.regularizers
        for method in spec.methods
    ]


def grid_of(spec: Spec) -> Iterator[Run]:
    """Yield every cell of every setting's grid."""
    for setting in settings_of(spec):
        for alpha in spec.alphas:
            for step in spec.steps_of(setting.method):
                yield Run("grid", setting, alpha, step)
