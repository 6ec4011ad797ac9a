"""Many steps of MSCG (Algorithm 2) with a robust mean, whose block means of the Jacobian are never formed.

Both estimators are convex combinations Σ λ_b z_b of the k block means, and λ follows from their distances alone,
these from the k×k Gram matrix; zᵀq is then a combination of the rows of the blocks with λ_b > 0.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.codes import OuterCode, PenaltyCode
from stoic.engines.kernels.jit import allocating_kernel
from stoic.engines.kernels.parts.batches import Data, move, predict, reserve_move, slopes_of
from stoic.engines.kernels.parts.losses import loss_value
from stoic.engines.kernels.parts.outers import outer_gradient
from stoic.engines.kernels.rows import CSR, Dense, Ints, by_storage, dot, push
from stoic.engines.kernels.vectors.any import intercept, needs_refresh, refresh, settle

SMALLEST_BALL, GEOMETRIC_MEDIAN = range(2)

Floats = NDArray[np.float64]

_TOLERANCE = 1e-8  # these two as in means.py
_MAX_STEPS = 1000


class Blocks(NamedTuple):
    """Which estimator, and where its blocks of a batch begin and end: k + 1 bounds."""

    kind: int
    bounds: Ints


@allocating_kernel
def robust_mscg_steps(
    data: Data,
    outer: OuterCode,
    penalty: PenaltyCode,
    blocks: Blocks,
    step: float,
    w: Any,
    rows: Ints,
    heads: Ints,
    counts: Ints,
) -> None:
    """Take a step for each pair of batches in rows (steps, 2, p, m), and stop before one that is too large.

    `heads` has an entry for each column, −1 before and after.
    """
    n_steps, _, p, m = rows.shape
    k = blocks.bounds.size - 1
    y, q, slopes, shares = np.empty(p), np.empty(p), np.empty((p, m)), np.empty(k)
    losses, far = np.empty((k, p)), np.empty((k, k))
    for t in range(n_steps):
        if needs_refresh(w, step, penalty.l1):
            refresh(w)
        block_losses(data, w, blocks.bounds, rows[t, 0], losses)  # Alg. 2, l. 3
        squared_distances(losses, far)
        if not estimate(blocks.kind, far, shares):
            return
        combine(shares, losses, y)
        slopes_of(data, w, rows[t, 1], slopes)
        jacobian_distances(data, blocks.bounds, rows[t, 1], slopes, heads, far)
        if not estimate(blocks.kind, far, shares):
            return
        outer_gradient(outer, y, q)
        tail = weigh_shares(slopes, q, blocks.bounds, shares)
        if not reserve_move(data, w, slopes, step):
            return
        move(data, w, rows[t, 1], slopes, step, rows[min(t + 1, n_steps - 1), 0])  # Alg. 2, l. 5
        settle(w, step, penalty.l1, penalty.l2, intercept(w) - step * tail, np.inf, data.has_tail)
        counts[0] += 1


@allocating_kernel
def block_losses(data: Data, w: Any, bounds: Ints, rows: Ints, losses: Floats) -> None:
    """Write the mean losses of the blocks (k, p)."""
    for b in range(bounds.size - 1):
        for i in range(rows.shape[0]):
            total = 0.0
            for j in range(bounds[b], bounds[b + 1]):
                total += loss_value(data.loss, predict(data, w, rows[i, j]), data.targets[rows[i, j]])
            losses[b, i] = total / (bounds[b + 1] - bounds[b])


@allocating_kernel
def squared_distances(points: Floats, far: Floats) -> None:
    """Write the squared distances of points (k, p)."""
    k, p = points.shape
    for b in range(k):
        far[b, b] = 0.0
        for a in range(b):
            total = 0.0
            for i in range(p):
                total += (points[a, i] - points[b, i]) ** 2
            far[a, b] = far[b, a] = total


@allocating_kernel
def jacobian_distances(data: Data, bounds: Ints, rows: Ints, slopes: Floats, heads: Ints, far: Floats) -> None:
    """Write the squared Frobenius distances of the block means of the Jacobian."""
    p, k = rows.shape[0], bounds.size - 1
    tails = np.zeros(k)
    far[:] = 0.0
    for i in range(p):
        add_gram(data.X, bounds, rows[i], slopes[i], heads, far)
        if data.has_tail:
            for b in range(k):
                tails[b] = slopes[i, bounds[b] : bounds[b + 1]].mean()
                for a in range(b + 1):
                    far[b, a] += tails[a] * tails[b]
    for b in range(k):
        for a in range(b):
            squared = far[a, a] + far[b, b] - 2.0 * far[b, a]
            far[a, b] = max(squared, 0.0)  # NaN stays
    for b in range(k):
        far[b, b] = 0.0
        for a in range(b):
            far[b, a] = far[a, b]


@allocating_kernel
def add_gram_csr(X: CSR, bounds: Ints, rows: Ints, slopes: Floats, heads: Ints, gram: Floats) -> None:
    """Add the products of block means as sparse vectors."""
    room = np.int64(0)
    for row in rows:
        room += np.int64(X.indptr[row + 1]) - np.int64(X.indptr[row])
    # A column's entries, one for each block that has it, are a list from its head to earlier blocks.
    values, following = np.empty(room), np.empty(room, np.int64)
    columns, block = np.empty(room, np.uint64), np.empty(room, np.uint64)
    n = np.uint64(0)
    for b in range(bounds.size - 1):
        start, size = np.int64(n), bounds[b + 1] - bounds[b]
        for j in range(bounds[b], bounds[b + 1]):
            weight = slopes[j] / size
            for e in range(np.uint64(X.indptr[rows[j]]), np.uint64(X.indptr[rows[j] + 1])):
                head = heads[X.indices[e]]
                if head >= start:
                    values[np.uint64(head)] += weight * X.data[e]
                else:
                    values[n], following[n], columns[n], block[n] = (
                        weight * X.data[e],
                        head,
                        X.indices[e],
                        b,
                    )
                    heads[X.indices[e]] = n
                    n += np.uint64(1)
    for k in range(n):
        line = gram[block[k]]
        other = np.int64(k)
        while other >= 0:
            line[block[np.uint64(other)]] += values[k] * values[np.uint64(other)]
            other = following[np.uint64(other)]
        heads[columns[k]] = -1


@allocating_kernel
def add_gram_dense(X: Dense, bounds: Ints, rows: Ints, slopes: Floats, heads: Ints, gram: Floats) -> None:
    """Add the products of block means as vectors."""
    k = bounds.size - 1
    means = Dense(np.zeros((k, heads.size)))
    for b in range(k):
        mean = means.values[b]
        for j in range(bounds[b], bounds[b + 1]):
            push(X, rows[j], slopes[j] / (bounds[b + 1] - bounds[b]), mean)
        for a in range(b + 1):
            gram[b, a] += dot(means, a, mean)


add_gram = by_storage(add_gram_csr, add_gram_dense)
"""Add the products of the block means of slope·x to the lower half of `gram`; `heads` as above.

add_gram(X, bounds, rows, slopes, heads, gram)
"""


@allocating_kernel
def estimate(kind: int, far: Floats, shares: Floats) -> bool:
    """Write the shares λ of the points with squared distances `far`; false where one is not finite."""
    if not np.isfinite(far.sum()):
        return False
    if kind == SMALLEST_BALL:
        smallest_ball(far, shares)
    else:
        geometric_median(far, shares)
    return True


@allocating_kernel
def smallest_ball(far: Floats, shares: Floats) -> None:
    """Give all to the point whose ball is the smallest to hold half of the points."""
    k = far.shape[0]
    winner, least = 0, np.inf
    for b in range(k):
        squared_radius = np.sort(far[b])[(k + 1) // 2 - 1]  # Alg. 1, l. 7
        if squared_radius < least:
            winner, least = b, squared_radius
    shares[:] = 0.0
    shares[winner] = 1.0  # Alg. 1, l. 8


@allocating_kernel
def geometric_median(far: Floats, shares: Floats) -> None:
    """Take Weiszfeld's steps as means.py does, in terms of λ: for Σγ = 0, ‖Σ γ_b z_b‖² = −½ γᵀ·far·γ."""
    k = far.shape[0]
    best, least = 0, np.inf
    for b in range(k):
        total = np.sqrt(far[b]).sum()
        if total < least:
            best, least = b, total
    ordered = np.sqrt(np.sort(far[best]))
    nearby = _TOLERANCE * 0.5 * (ordered[(k - 1) // 2] + ordered[k // 2])
    shares[:] = 0.0
    shares[best] = 1.0
    spread = far[best].copy()  # far·λ: the squared length from z_b to the center is spread_b − ½ λ·spread
    weights, pull, pulled = np.empty(k), np.empty(k), np.empty(k)
    for _ in range(_MAX_STEPS):
        half = 0.5 * dot_of(shares, spread)
        strain, n_here = 0.0, 0
        for b in range(k):
            length = np.sqrt(max(spread[b] - half, 0.0))
            weights[b] = 1.0 / length if length > nearby else 0.0
            strain += weights[b]
            n_here += weights[b] == 0.0
        for b in range(k):
            pull[b] = weights[b] - strain * shares[b]
        for b in range(k):
            pulled[b] = dot_of(far[b], pull)
        strength = np.sqrt(max(-0.5 * dot_of(pull, pulled), 0.0))
        if strength <= n_here:
            break
        step = (1.0 - n_here / strength) / strain
        for b in range(k):
            shares[b] += step * pull[b]
            spread[b] += step * pulled[b]
        if step * strength <= nearby:
            break


@allocating_kernel
def dot_of(x: Floats, y: Floats) -> float:
    """Return x·y."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@allocating_kernel
def combine(shares: Floats, points: Floats, out: Floats) -> None:
    """Write Σ λ_b·point_b into out."""
    out[:] = 0.0
    for b in range(shares.size):
        if shares[b] != 0.0:
            for i in range(out.size):
                out[i] += shares[b] * points[b, i]


@allocating_kernel
def weigh_shares(slopes: Floats, q: Floats, bounds: Ints, shares: Floats) -> float:
    """Turn slopes into the weights of the rows in zᵀq, z = Σ λ_b z_b; return their sum."""
    total = 0.0
    for b in range(shares.size):
        share = shares[b] / (bounds[b + 1] - bounds[b])
        for i in range(q.size):
            for j in range(bounds[b], bounds[b + 1]):
                slopes[i, j] = q[i] * slopes[i, j] * share if share != 0.0 else 0.0
                total += slopes[i, j]
    return total
