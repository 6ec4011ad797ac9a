r"""Protection of groups: the outer function that a model is trained with, from the shared model on.

- **loss**: :math:`\tau \log \frac1p \sum_i e^{g_i/\tau}` follows the group with the largest loss. The shared model
  is the average over the groups.
- **regret**: :math:`\tau \log \sum_i \pi_i e^{(g_i - b_i)/(s_i \tau)}` follows the group that the model fails:
  :math:`b_i` is the loss that its own model would have. The shared model is the average over the rows.

Of regret, :math:`s_i` is what a unit of error costs in group i over that in all rows, so that regrets compare as
errors do: the gain of its own model in loss over that in error, else its mean :math:`|\ell'|`; and :math:`\pi_i`
is its share of the rows times :math:`s_i`, so that equal regrets give each row the same weight.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from stoic.checks import check_finite
from stoic.errors import InvalidParameter
from stoic.estimators.own_models import own_models
from stoic.estimators.rows import TrainingRows
from stoic.inners.blocks import sums_by
from stoic.inners.group_loss import GroupLoss
from stoic.losses import Logistic, Loss, Quantile
from stoic.outers import Linear, LogSumExp
from stoic.protocols import Outer, Vector

PROTECTIONS = ("loss", "regret")
_WORST = 0.01  # of the mean loss: how far a temperature of 0 is from the maximum
_NOISE = 3.0  # errors of the group losses that count as no difference
_CHEAP = 1e-3  # of the mean cost of an error: a lower one counts as this much
_EQUAL = 1e-3  # of the mean loss: a smaller spread between groups counts as this much


class Levels(NamedTuple):
    """What is kept of a protection: τ, or None for the shared model; and of regret b and s."""

    temperature: float | None
    baselines: Vector | None = None
    scales: Vector | None = None

    def outer(self, shares: Vector) -> Outer:
        """Return the outer function, for the weights of the groups in the shared model."""
        if self.temperature is None:
            return Linear(shares)
        if self.baselines is None or self.scales is None:
            return LogSumExp(self.temperature)
        return LogSumExp(self.temperature, shares * self.scales, self.baselines, self.scales)

    def spread_over(self, places: NDArray[np.intp], count: int) -> "Levels":
        """Return the levels of more groups: these at their places, for the others none yet."""
        if self.baselines is None or self.scales is None:
            return self
        baselines, scales = np.zeros(count), np.ones(count)
        baselines[places], scales[places] = self.baselines, self.scales
        return self._replace(baselines=baselines, scales=scales)

    def with_groups(self, places: NDArray[np.intp], losses: Vector) -> "Levels":
        """Return the levels with the losses of new groups as their baselines: no regret is known of them."""
        if self.baselines is None:
            return self
        baselines = self.baselines.copy()
        baselines[places] = losses
        return self._replace(baselines=baselines)


class Yardstick(NamedTuple):
    """What the levels of the groups are measured with: b and s of regret, and the unit and the least τ there are.

    `slope` is the mean of what an error costs: losses over it are errors.
    """

    unit: float
    floor: float
    baselines: Vector | None = None
    scales: Vector | None = None
    slope: float = 1.0

    def at(self, temperature: float) -> Levels:
        """Return the levels at a temperature; the shared model's at infinity, or where nothing is to be gained."""
        tau = None
        if math.isfinite(temperature) and self.unit > 0.0:
            tau = max(temperature * self.unit, self.floor)
        return Levels(tau, self.baselines, self.scales)


class Protection(Protocol):
    """A way to protect groups."""

    def shares(self, rows: TrainingRows) -> Vector:
        """Return the weights of the groups in the shared model."""
        ...

    def yardstick(self, rows: TrainingRows, loss: Loss, w: Vector, rng: Generator) -> Yardstick:
        """Return what the groups are measured with, from the shared model w."""
        ...


@dataclass(frozen=True)
class LossProtection:
    """Protect the groups with the largest losses; see the module."""

    def shares(self, rows: TrainingRows) -> Vector:
        """Return the same weight for each group."""
        return np.full(rows.n_groups, 1.0 / rows.n_groups)

    def yardstick(self, rows: TrainingRows, loss: Loss, w: Vector, rng: Generator) -> Yardstick:  # noqa: ARG002
        """Return the differences of the losses as the unit."""
        inner = rows.inner(loss)
        means = inner.value(w, inner.everything())[0]
        return loss_yardstick(means, group_noise(rows, inner.losses(w), means))


def loss_yardstick(losses: Vector, noise: float) -> Yardstick:
    """Return the yardstick of losses of the groups with errors of that size."""
    if len(losses) == 1:
        return Yardstick(0.0, 0.0)
    mean = float(losses.mean()) or 1.0
    unit = max(math.hypot(float(losses.std()), _NOISE * noise), _EQUAL * mean)
    return Yardstick(unit, _WORST * mean / math.log(len(losses)))


@dataclass(frozen=True)
class RegretProtection:
    """Protect the groups that the shared model fails; see the module.

    Parameters
    ----------
    baselines : array of shape (p,), optional
        b; by default what the groups' own models reach.
    """

    baselines: Vector | None = None

    def shares(self, rows: TrainingRows) -> Vector:
        """Return the shares of the groups in the rows."""
        weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
        sizes = sums_by(rows.codes, weight, rows.n_groups)
        return np.asarray(sizes / sizes.sum())

    def yardstick(self, rows: TrainingRows, loss: Loss, w: Vector, rng: Generator) -> Yardstick:
        """Return the baselines, and the largest regret as the unit; it is 0 where there is none."""
        inner, shares = rows.inner(loss), self.shares(rows)
        means = inner.value(w, inner.everything())[0]
        baselines, costs = self.baselines, _unit_costs(rows, loss, w)
        if baselines is None:
            own = own_models(rows, loss, w, rng)
            baselines, costs = means - own.certain_gains, own.unit_costs(costs)
        slope = float(shares @ costs) or 1.0
        scales = np.maximum(costs / slope, _CHEAP)
        largest = float(((means - baselines) / scales).max()) if rows.n_groups > 1 else 0.0
        return Yardstick(largest, _WORST * largest, baselines, scales, slope)


def _unit_costs(rows: TrainingRows, loss: Loss, w: Vector) -> Vector:
    """Return what a unit of error costs in each group: its mean |ℓ′|; 1 of losses that are errors themselves."""
    if rows.n_outputs > 1 or isinstance(loss, Logistic | Quantile):
        return np.ones(rows.n_groups)
    inner = cast("GroupLoss", rows.inner(loss))
    steep = np.abs(inner.slopes_at(inner.predict(w, inner.everything()), inner.everything()))
    return sums_by(rows.codes, steep, rows.n_groups)


def group_noise(rows: TrainingRows, losses: Vector, means: Vector) -> float:
    """Return the typical error of the mean losses of the groups, from the losses of the rows."""
    weight = np.ones(len(losses)) if rows.weight is None else rows.weight
    shares = weight / sums_by(rows.codes, weight, rows.n_groups)[rows.codes]
    squares = np.square(shares * (losses - means[rows.codes]))
    return float(np.sqrt(np.mean(sums_by(rows.codes, squares, rows.n_groups))))


def given_baselines(given: object, labels: Sequence[Any]) -> Vector:
    """Return the baselines that a user gave by group, in the order of the groups.

    Raises
    ------
    InvalidParameter
        If it is no mapping, or has no finite number for a group.
    """
    if not isinstance(given, Mapping):
        raise InvalidParameter(
            f"baseline is of type {type(given).__name__}; give a mapping from groups to numbers."
        )
    missing = [label for label in labels if label not in given]
    if missing:
        raise InvalidParameter(f"baseline has no number for group {missing[0]!r}; give one for each group.")
    return np.array([check_finite(f"baseline[{label!r}]", given[label]) for label in labels])
