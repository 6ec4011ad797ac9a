"""The reference truncation of ROSC: keep an estimate near its reference, else use the reference."""

from typing import NamedTuple

import numpy as np

from stoic.protocols import Array


class Levels(NamedTuple):
    r"""The distances of y and z from their references beyond which they are truncated.

    y is kept iff :math:`\|y - \tilde y_0\| \le C_g \|w - w_0\| + \text{slack}_y`, and z iff
    :math:`\|z - \tilde z_0\|_F \le L_g \|w - w_0\| + \text{slack}_z`: (4) and (5), where a slack is the
    paper's νσ + λ. Values and Jacobians have different units, hence a slack each.

    Parameters
    ----------
    C_g, L_g : float
        Lipschitz constants of g and of ∇g.
    slack_y, slack_z : float
        νσ₀ + λ for values and νσ₁ + λ for Jacobians; ``inf`` keeps every finite estimate.

    Examples
    --------
    >>> levels = Levels(C_g=2.0, L_g=0.5, slack_y=1.0, slack_z=3.0)
    >>> levels.radius_y(10.0), levels.radius_z(10.0)
    (21.0, 8.0)
    """

    C_g: float
    L_g: float
    slack_y: float
    slack_z: float

    def radius_y(self, distance: float) -> float:
        """Return the radius of (4) at a point w that is `distance` away from w₀."""
        return self.C_g * distance + self.slack_y  # (4)

    def radius_z(self, distance: float) -> float:
        """Return the radius of (5) at a point w that is `distance` away from w₀."""
        return self.L_g * distance + self.slack_z  # (5)


def truncate(x: Array, reference: Array, radius: float) -> tuple[Array, bool]:
    r"""Return x if :math:`\|x - \text{reference}\| \le \text{radius}`, else the reference.

    Parameters
    ----------
    x, reference : ndarray of the same shape
        An estimate and the robust estimate that it is held against; the norm is Euclidean for vectors,
        Frobenius for Jacobians. Neither is copied or changed.
    radius : float
        From `Levels`.

    Returns
    -------
    estimate : ndarray
        `x` itself or `reference` itself.
    truncated : bool
        Whether it is the reference. A distance that is NaN, infinite or overflows is truncated, whatever
        the radius: one wild sample never reaches the iterate.

    Examples
    --------
    >>> import numpy as np
    >>> truncate(np.array([3.0, 4.0]), np.zeros(2), 5.0)
    (array([3., 4.]), False)
    >>> truncate(np.array([3.0, np.nan]), np.zeros(2), np.inf)
    (array([0., 0.]), True)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        distance = float(np.linalg.norm(x - reference))
    if distance <= radius and distance < np.inf:  # (4), (5); false for NaN
        return x, False
    return reference, True


def truncated_mean(parts: Array, reference: Array, radius: float) -> tuple[Array, int]:
    r"""Return the mean of estimates each of which may be truncated, and how many were.

    Parameters
    ----------
    parts : ndarray of shape (n, ...)
        Means of the parts of a batch: of the whole of it (n = 1), as in the paper, or single samples.
    reference : ndarray of shape (...)
        What takes the place of a part that strays.
    radius : float
        From `Levels`.

    Examples
    --------
    >>> import numpy as np
    >>> truncated_mean(np.array([[1.0], [2.0], [90.0]]), np.array([0.0]), 5.0)
    (array([1.]), 1)
    """
    if len(parts) == 1:
        estimate, is_truncated = truncate(parts[0], reference, radius)
        return estimate, int(is_truncated)
    kept = [truncate(part, reference, radius) for part in parts]
    mean = sum(estimate for estimate, _ in kept) / len(kept)
    return np.asarray(mean), sum(is_truncated for _, is_truncated in kept)
