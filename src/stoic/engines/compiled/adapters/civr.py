"""CIVR in its kernel."""

from typing import Any, cast

import numpy as np

from stoic.engines.compiled.adapters.base import DrawsAll, Rows
from stoic.engines.compiled.problem import Translated
from stoic.engines.kernels.rows import read_only
from stoic.engines.kernels.steps.civr import Pull, civr_steps
from stoic.protocols import Array
from stoic.solvers.civr import CIVR, CIVRState


class CIVRAdapter(DrawsAll):
    """CIVR after its anchor; dense, as its mathematics is."""

    def __init__(self, solver: CIVR, problem: Translated) -> None:
        self.solver, self.problem = solver, problem

    def begin(self, state: CIVRState) -> None:
        """Take over from a state."""
        z = cast("Array", state.z)  # its first step is the plain engine's
        self.arrays = state.w, state.previous, state.y, z

    def run(self, t: int, rows: Rows, counts: Rows) -> None:  # noqa: ARG002
        """Take the steps, on copies: those before one that fails are taken again."""
        arrays, taken = self._stepped(rows)
        if taken < len(rows):
            arrays, taken = self._stepped(rows[:taken])
        self.arrays = arrays
        counts[0] += taken

    def _stepped(self, rows: Rows) -> tuple[Any, int]:
        problem, (center, weight) = self.problem, self.problem.anchor
        w, before, y, z = (np.array(part) for part in self.arrays)
        pull = Pull(weight, read_only(np.zeros(w.size) if center is None else center))
        step, q = float(self.solver.step_size), np.empty(len(y))
        parts = problem.data, problem.outer, problem.penalty, pull
        taken = civr_steps(*parts, step, w, before, y, z, rows[:, 0], q)
        return (w, before, y, z), taken

    def state(self, t: int) -> CIVRState:
        """Return the state at step t."""
        w, before, y, z = self.arrays
        return CIVRState(w, before, t, y, z)

    def evaluations(self, t: int, n_steps: int) -> int:  # noqa: ARG002
        """Return two evaluations a batch."""
        return 2 * n_steps


adapter = CIVRAdapter
