r"""Learning from batches of rows, one after another, without those before: `partial_fit`.

Each batch moves the weights to the minimum of its own loss with a pull to where they were,

.. math:: \sum_i q_i g_i^{\mathrm{batch}}(w) + r(w) + \tfrac\rho2 \|w - w_{\mathrm{before}}\|^2, \qquad
    \rho = h \, \frac{\text{rows before}}{\text{rows of the batch}},

where h is the mean curvature of a coordinate over the rows before. For a plain mean that is the running mean of
all rows. The weights q of the groups come from running means of their losses.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stoic.estimators.convergence import Convergence, convergence
from stoic.estimators.protection import Levels, group_noise, loss_yardstick
from stoic.estimators.rows import TrainingRows
from stoic.estimators.scales import Frame, outlier_size
from stoic.estimators.sparsify import with_zeros
from stoic.estimators.training import Trainer
from stoic.inners.blocks import sums_by
from stoic.inners.group_loss import GroupLoss
from stoic.inners.labels import join_labels
from stoic.losses import Loss
from stoic.outers import Linear
from stoic.problem import Problem
from stoic.protocols import Regularizer, Vector
from stoic.regularizers import Anchored
from stoic.solve.result import Result

_PROBES = 8
_SET = 4.0  # the temperature "auto" where the first batch was one group, which says nothing about it
_LEAST_SHARE = 0.05  # of a batch in the running loss of a group: losses of early weights are to be forgotten


@dataclass(frozen=True)
class Memory:
    """The state of a model after some batches, beside its weights.

    Scales, loss and penalty; the labels of the groups, their losses and how many rows they had; the mean curvature
    of a coordinate; and what is kept of the protection, whose τ is chosen once there are two groups.
    """

    frame: Frame
    loss: Loss
    regularizer: Regularizer
    labels: NDArray[Any]
    losses: Vector
    counts: Vector
    curvature: float
    levels: Levels

    @property
    def weights(self) -> Vector:
        """The weights of the groups, which sum to 1."""
        if self.levels.baselines is None:
            shares = np.full(len(self.losses), 1.0 / len(self.losses))
        else:
            shares = self.counts / self.counts.sum()
        weights = self.levels.outer(shares).gradient(self.losses)
        return np.asarray(weights / weights.sum()) if self.levels.scales is not None else weights

    def joined(self, labels: NDArray[Any]) -> "Memory":
        """Return the memory with room for groups that are new; all labels sorted."""
        every, places = join_labels(self.labels, labels)
        here = places[: len(self.labels)]
        losses, counts = np.zeros(len(every)), np.zeros(len(every))
        losses[here], counts[here] = self.losses, self.counts
        return replace(
            self, labels=every, losses=losses, counts=counts, levels=self.levels.spread_over(here, len(every))
        )

    def with_batch(self, rows: TrainingRows, w: Vector, temperature: float) -> "Memory":
        """Return the memory with the losses of a batch at w in it."""
        memory = self.joined(rows.labels)
        inner = rows.inner(self.loss)
        here, means, sizes = memory.places(rows), inner.value(w, inner.everything())[0], group_sizes(rows)
        losses, counts = memory.losses.copy(), memory.counts.copy()
        share = np.maximum(sizes / (counts[here] + sizes), _LEAST_SHARE)
        losses[here] += share * (means - losses[here])
        is_new, counts[here] = counts[here] == 0.0, counts[here] + sizes
        levels = memory.levels.with_groups(here[is_new], means[is_new])
        if levels.temperature is None and levels.baselines is None:
            noise = group_noise(rows, inner.losses(w), means)
            levels = loss_yardstick(losses, noise).at(temperature)
        return replace(memory, losses=losses, counts=counts, levels=levels)

    def places(self, rows: TrainingRows) -> NDArray[np.intp]:
        """Return the numbers that the groups of a batch have among all."""
        return join_labels(self.labels, rows.labels)[1][len(self.labels) :]


def group_sizes(rows: TrainingRows) -> Vector:
    """Return the number of rows of each group, or their weight."""
    weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
    return sums_by(rows.codes, weight, rows.n_groups)


def learn(memory: Memory, trainer: Trainer, w: Vector) -> tuple[Memory, Vector, Result, Convergence]:
    """Return memory, weights, the solve and convergence after one more batch, the trainer's rows, from w on."""
    trainer = replace(trainer, rows=trainer.rows.calmed(w, memory.loss))
    rows, before, h = trainer.rows, float(memory.counts.sum()), memory.curvature
    memory = memory.with_batch(rows, w, _SET if trainer.temperature == "auto" else trainer.temperature)
    inner, q, size = rows.inner(memory.loss), memory.weights[memory.places(rows)], float(group_sizes(rows).sum())
    problem = Problem(inner, Linear(q), memory.regularizer)
    anchored = problem.with_regularizer(Anchored(problem.regularizer, w, h * before / size))
    result = trainer.solve(anchored, w, w, share=1.0, is_last=True)
    answer = result.w if trainer.is_exact else with_zeros(anchored, result.w)
    reached = convergence(anchored, answer, w, trainer.watch.tol, is_exact=trainer.is_exact)
    fresh = mean_curvature(rows, memory.loss, answer)
    memory = replace(memory, curvature=(h * before + fresh * size) / (before + size))
    return memory, answer, result, reached


def mean_curvature(rows: TrainingRows, loss: Loss, w: Vector) -> float:
    """Return the mean curvature of a coordinate on some rows: trace of the Hessian over d."""
    some = rows.for_history
    is_wild = some.squares > outlier_size(some.squares)  # it would hold the weights for good
    if is_wild.any():  # of a group nothing may be left
        some = some.part(~is_wild)
        some = replace(some, codes=np.zeros_like(some.codes), labels=some.labels[:1])
    inner: Any = some.inner(loss)
    data, shares = inner.everything(), group_sizes(some)
    one = shares / shares.sum()
    if isinstance(inner, GroupLoss):
        return max(float(inner.hessian_diagonal(w, data, one).sum()) / w.size, 1e-300)
    rng = np.random.default_rng(0)
    signs = (rng.choice([-1.0, 1.0], size=w.size) for _ in range(_PROBES))
    products = [v @ inner.hessian_product(w, data, one, v) for v in signs]
    return max(float(np.mean(products)) / w.size, 1e-300)
