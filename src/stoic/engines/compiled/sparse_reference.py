"""The start of a ROSC stage on sparse rows: robust means and slacks without a dense block of Jacobians."""

from typing import Any, cast

import numpy as np
from numpy.random import Generator
from scipy import sparse

from stoic.inners.blocks import block_bounds
from stoic.inners.group_loss import GroupLoss
from stoic.inners.metered import Metered
from stoic.inners.sparse_blocks import SparseBlocks, predictions
from stoic.means import SmallestBall
from stoic.pilot.probes import median_distance, typical
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solvers.base import AnySolver
from stoic.solvers.rosc import ROSC, Calibrated, Reference


def sparse_init(solver: AnySolver, problem: Problem, w0: Vector, rng: Generator) -> Any:
    """Return ``solver.init(problem, w0, rng)``; for ROSC on CSR rows from the distances of the block means."""
    meter = cast("Metered", problem.inner)
    inner = cast("GroupLoss", meter.inner)
    is_sparse = sparse.issparse(inner.X)
    if not (is_sparse and isinstance(solver, ROSC) and isinstance(solver.reference_mean, SmallestBall)):
        return solver.init(problem, w0, rng)
    b = solver.reference_size
    batch = meter.draw(b, rng).batch  # Alg. 5, l. 1
    meter.charge(0, meter.cost(b))
    prediction = predictions(inner, w0, batch.rows)
    blocks = solver.reference_mean.n_blocks(b)
    y = solver.reference_mean.combine(inner.value_at(prediction, batch, blocks))  # Alg. 5, l. 2
    means = SparseBlocks(inner, batch.rows, inner.slopes_at(prediction, batch))
    z = means.smallest_ball(block_bounds(b, blocks))[0]
    levels = solver.levels
    if isinstance(levels, Calibrated):
        cuts = solver.calibration_blocks
        far_y = median_distance(inner.value_at(prediction, batch, cuts), y)
        far_z = typical(means.distances_to(z, block_bounds(b, cuts)), float(np.linalg.norm(z)))
        levels = solver.calibrated(far_y, far_z)
    return solver.started(Reference(w0, y, z, levels))
