r"""Confidence bounds on an expectation along one fixed but unknown direction, from the means of blocks.

Let :math:`b_1, \dots, b_k` be independent vectors with the expectation β. A bound on F(w) − F* needs ⟨β, x⟩ along
one x only, the way from w to the optimum. That way is not known, but it is no matter of chance either: w was there
before the samples. So P(⟨β, x⟩ > ⟨mean, x⟩ + width(x)) ≤ δ is needed for each *fixed* x, not for all at once, and
neither the dimension nor the trace of a covariance enters. With :math:`X_j = \langle \beta - b_j, x \rangle`,
their sum S, :math:`V^2 = \sum X_j^2`, :math:`B^2 = \mathrm E V^2` and ℓ = log(1/δ):

1. Where the :math:`X_j` are symmetric, S is a sum of random signs given their sizes, and by Hoeffding's inequality
   :math:`P(S > \sqrt{2\ell}\, V) \le \delta`: for every law, of any tails, at any k.
2. For any law, :math:`e^{x - x^2/6} \le 1 + x + x^2/3` gives :math:`\mathrm E \exp(\lambda S - \lambda^2 V^2/6 -
   \lambda^2 B^2/3) \le 1` for every λ (Delyon 2009). With :math:`\lambda = \sqrt{2\ell}/B` and probability 1 − δ,
   :math:`S \le \sqrt{2\ell}\, V (\tfrac56 B/V + \tfrac16 V/B)`, and the bracket is at most 1.3 wherever
   :math:`B^2/2 \le V^2 \le 49 B^2`.

So :math:`S \le sV` with :math:`s = 1.3 \sqrt{2\ell}`: for symmetric errors with much to spare, else if the samples
show at least half of the variance there is, and at most 49 times as much. Some such condition is needed: no
interval for a mean holds for all laws of finite variance, since what happens once in 10 n samples need not be seen
in n of them. V is about the truth; about the mean of the blocks, with their standard deviation, S ≤ sV reads

.. math:: \langle \beta - \bar b, x \rangle \le \mathrm{width}(x)
    = s \sqrt{\frac{k - 1}{k - s^2}} \, \frac{\mathrm{sd}_j \langle b_j, x \rangle}{\sqrt k} .

A median of the blocks would ignore a rare jump that the expectation has in it; the mean with its own standard
deviation does not, and has no bias under skewness.
"""

import math
from dataclasses import dataclass

import numpy as np

from stoic.protocols import Array, Vector

VARIANCE_CLAUSE = "the samples show at least half of the variance there is, and at most 49 times as much"

_SLACK = 1.3
_FEWEST_BLOCKS, _BLOCKS_PER_LOG = 64, 16
_GRID = 1.0 / (1.0 + np.exp(-np.linspace(-14.0, 14.0, 281)))  # within 0.2 % of the least value over all t


def n_blocks(delta: float) -> int:
    """Return the number of blocks that δ needs: s² is then at most a fifth of it, or little more.

    Examples
    --------
    >>> n_blocks(0.05), n_blocks(0.001)
    (64, 111)
    """
    return max(_FEWEST_BLOCKS, math.ceil(_BLOCKS_PER_LOG * math.log(1.0 / delta)))


def factor(delta: float, k: int) -> float:
    """Return the factor on the standard error of k blocks that makes a bound hold with probability 1 − δ."""
    s = _SLACK * math.sqrt(2.0 * math.log(1.0 / delta))
    return s * math.sqrt((k - 1) / (k - s * s))


@dataclass(frozen=True)
class Measured:
    """An expectation, measured: along a fixed x it is above ⟨mean, x⟩ + ‖wide x‖ with probability δ at most.

    Attributes
    ----------
    mean : array of shape (d,)
    wide : array of shape (k, d)
        The blocks less their mean, times the `factor` over √(k(k − 1)).
    """

    mean: Vector
    wide: Array

    @classmethod
    def of(cls, points: Array, delta: float) -> "Measured":
        """Return the estimate from the rows of `points`, the means of blocks."""
        k, mean = len(points), points.mean(axis=0)
        return cls(mean, (points - mean) * (factor(delta, k) / math.sqrt(k * (k - 1))))

    @property
    @np.errstate(over="ignore")
    def is_finite(self) -> bool:
        """Whether all of it is finite, squares included."""
        return bool(np.isfinite(np.square(self.mean).sum() + np.square(self.wide).sum()))

    @property
    def widths(self) -> Vector:
        """The widths along the coordinates."""
        widths: Vector = np.linalg.norm(self.wide, axis=0)
        return widths


class Rise:
    r"""The largest value over x of :math:`\langle v, x \rangle + \|\mathrm{wide}\, x\| - \tfrac12 \|x\|^2`.

    For every t with :math:`t\,\mathrm{wide}^\top \mathrm{wide} \prec I`, ‖wide x‖ ≤ (t ‖wide x‖² + 1/t)/2, so that
    the value is at most :math:`\tfrac12 v^\top (I - t\,\mathrm{wide}^\top \mathrm{wide})^{-1} v + 1/(2t)`. The
    least of these over a grid of t is what is returned.

    Examples
    --------
    >>> import numpy as np
    >>> rise = Rise(np.array([[3.0, 0.0], [0.0, 0.0]]))
    >>> round(rise(np.array([0.0, 2.0])), 2), round(rise(np.array([2.0, 0.0])), 2)  # (3² + 2²)/2, (3 + 2)²/2
    (6.5, 12.5)
    """

    def __init__(self, wide: Array) -> None:
        self._wide = wide
        self._squares, self._vectors = _eigen(wide)

    def __call__(self, v: Vector) -> float:
        """Return the value for one v."""
        free, top = 0.5 * float(v @ v), float(self._squares[-1])
        if not 0.0 < top < math.inf:
            return free + top
        t = (_GRID / top)[:, None]
        sums = (t * self._moments(v) / (1.0 - t * self._squares)).sum(axis=1)
        return free + 0.5 * float(np.min(sums + 1.0 / t[:, 0]))

    def _moments(self, v: Vector) -> Vector:
        """Return σ²⟨v, direction⟩² for the squared singular values σ² of `wide` and their directions."""
        if self._wide.shape[1] <= len(self._wide):
            return self._squares * np.square(v @ self._vectors)
        moments: Vector = np.square((self._wide @ v) @ self._vectors)
        return moments


def widest(wide: Array) -> float:
    """Return the largest ‖wide x‖ of a unit vector x."""
    return math.sqrt(_eigen(wide)[0][-1])


def _eigen(a: Array) -> tuple[Vector, Array]:
    """Return the eigenvalues, upwards, and the eigenvectors of aᵀa or aaᵀ, whichever is smaller."""
    gram = a.T @ a if a.shape[1] <= len(a) else a @ a.T
    if not np.isfinite(gram).all():  # which LAPACK would refuse
        return np.full(len(gram), math.inf), gram
    eigenvalues, vectors = np.linalg.eigh(gram)
    return np.maximum(eigenvalues, 0.0), vectors
