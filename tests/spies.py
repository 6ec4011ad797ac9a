"""An inner part that watches what is done to it, counted anew and without a look at the code under test."""

from collections.abc import Callable
from typing import Any

import numpy as np


class Spy:
    """Pass everything on to a `GroupLoss`, counting rows drawn and distinct pairs of a batch and a point.

    `alarm` is called with the number of the call (draws and evaluations alike) before it is passed on.
    """

    def __init__(self, inner: Any, alarm: Callable[[int], None] | None = None) -> None:
        self._inner, self._alarm = inner, alarm
        self.calls = self.samples = self.evaluations = 0
        self._pairs: dict[tuple[int, int], tuple[Any, Any]] = {}  # keeps both alive, so that ids stay unique

    shape = property(lambda self: self._inner.shape)
    n_samples = property(lambda self: self._inner.n_samples)
    n_unpenalized = property(lambda self: self._inner.n_unpenalized)

    draws_groups = property(lambda self: self._inner.draws_groups)

    def cost(self, size, groups=None):
        return self._inner.cost(size, groups)

    def draw(self, size, rng, groups=None):
        self._called()
        return self._drawn(self._inner.draw(size, rng, groups))

    def everything(self):
        self._called()
        return self._drawn(self._inner.everything())

    def value(self, w, batch, blocks=1):
        self._evaluated(w, batch)
        return self._inner.value(w, batch, blocks)

    def jacobian(self, w, batch, blocks=1):
        self._evaluated(w, batch)
        return self._inner.jacobian(w, batch, blocks)

    def vjp(self, w, batch, q):
        self._evaluated(w, batch)
        return self._inner.vjp(w, batch, q)

    def hessian(self, w, batch, q):
        self._evaluated(w, batch)
        return self._inner.hessian(w, batch, q)

    def hessian_product(self, w, batch, q, v):
        self._evaluated(w, batch)
        return self._inner.hessian_product(w, batch, q, v)

    def _drawn(self, batch):
        self.samples += self._rows(batch)
        return batch

    def _rows(self, batch) -> int:
        return self._inner.n_samples if batch.rows is None else np.size(batch.rows)

    def _evaluated(self, w, batch) -> None:
        self._called()
        if (id(batch), id(w)) not in self._pairs:
            self._pairs[id(batch), id(w)] = (batch, w)
            self.evaluations += self._rows(batch)

    def _called(self) -> None:
        self.calls += 1
        if self._alarm is not None:
            self._alarm(self.calls)
