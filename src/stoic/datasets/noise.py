"""Noise on labels: the six heavy-tailed kinds of the paper's experiment, and others made by name."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from stoic.checks import check_count, check_positive, check_real
from stoic.errors import InvalidParameter
from stoic.inners.validation import check_vector
from stoic.protocols import Vector


class Noise(Protocol):
    """A law that numbers are drawn from."""

    def draw(self, size: int, rng: Generator) -> Vector:
        """Return `size` numbers, independent but for a common shift."""
        ...


@dataclass(frozen=True, slots=True)
class Pareto:
    r"""Pareto noise with scale 1, shifted so that a sample has mean 0.

    Before the shift the density is :math:`a x^{-(a+1)}` on :math:`x \ge 1`, where a is the tail. The shift is
    by the mean of the *sample* that is drawn, not by the mean :math:`a / (a - 1)` of the law: for a tail of 1.01
    that is 101, which hardly any sample comes near. Most of the shifted numbers are negative, and one that is
    drawn alone is 0.

    Parameters
    ----------
    tail : float
        Above 1, where the mean exists; moments of order `tail` and higher are infinite.

    Examples
    --------
    >>> import numpy as np
    >>> noise = Pareto(tail=2.01).draw(1000, np.random.default_rng(0))
    >>> bool(abs(noise.mean()) < 1e-12)
    True
    """

    tail: float

    def __post_init__(self) -> None:
        _check_above_one("tail", self.tail)

    def draw(self, size: int, rng: Generator) -> Vector:
        """Return `size` numbers whose mean is 0, but for rounding."""
        size = check_count("size", size, low=0)
        numbers = 1.0 + rng.pareto(self.tail, size)  # NumPy's starts at 0
        return numbers - numbers.mean() if size else numbers


@dataclass(frozen=True, slots=True)
class StudentT:
    """Student's t: symmetric around 0, with moments of every order below `df`.

    Parameters
    ----------
    df : float
        Degrees of freedom, above 1, where the mean exists.

    Examples
    --------
    >>> import numpy as np
    >>> StudentT(df=2.5).draw(3, np.random.default_rng(0)).shape
    (3,)
    """

    df: float

    def __post_init__(self) -> None:
        _check_above_one("df", self.df)

    def draw(self, size: int, rng: Generator) -> Vector:
        """Return `size` independent numbers."""
        return rng.standard_t(self.df, check_count("size", size, low=0))


@dataclass(frozen=True, slots=True)
class SparseUniform:
    """Normal noise everywhere, and uniform noise on top of it in a few rows.

    Parameters
    ----------
    bound : float
        The uniform noise is on [-bound, bound].
    share : float, default 0.1
        The probability of a row to have uniform noise, independently of the others; from 0 to 1.
    deviation : float, default 1.0
        Standard deviation of the normal noise; 0 leaves all other rows at exactly 0.

    Examples
    --------
    >>> import numpy as np
    >>> noise = SparseUniform(bound=5.0, deviation=0.0).draw(10_000, np.random.default_rng(0))
    >>> round(float((noise != 0.0).mean()), 2), bool(abs(noise).max() <= 5.0)
    (0.1, True)
    """

    bound: float
    share: float = 0.1
    deviation: float = 1.0

    def __post_init__(self) -> None:
        check_positive("bound", self.bound)
        check_real("share", self.share, low=0.0, high=1.0)
        _check_deviation(self.deviation)

    def draw(self, size: int, rng: Generator) -> Vector:
        """Return `size` independent numbers."""
        size = check_count("size", size, low=0)
        spikes = self.bound * rng.uniform(-1.0, 1.0, size)
        spikes[rng.random(size) >= self.share] = 0.0
        return spikes + self.deviation * rng.standard_normal(size)


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Normal noise with mean 0: the light-tailed kind to compare with.

    Parameters
    ----------
    deviation : float, default 1.0
        Standard deviation; 0 for none.

    Examples
    --------
    >>> import numpy as np
    >>> Gaussian(deviation=0.5).draw(2, np.random.default_rng(0)).shape
    (2,)
    """

    deviation: float = 1.0

    def __post_init__(self) -> None:
        _check_deviation(self.deviation)

    def draw(self, size: int, rng: Generator) -> Vector:
        """Return `size` independent numbers."""
        return self.deviation * rng.standard_normal(check_count("size", size, low=0))


class NoisyLabels(NamedTuple):
    """Labels with noise, and which kind each row has: a number, in the order of the mapping of kinds."""

    labels: Vector
    groups: NDArray[np.int64]


def make_noises(names: Iterable[str], *, share: float = 0.1, deviation: float = 1.0) -> dict[str, Noise]:
    """Return kinds of noise by name, in the order of the names.

    Parameters
    ----------
    names : iterable of str
        ``"pareto-TAIL"``, ``"student-DF"``, ``"sparse-BOUND"`` or ``"gaussian-DEVIATION"``, each once.
    share, deviation : float
        Of `SparseUniform`.

    Returns
    -------
    dict of str to Noise

    Raises
    ------
    InvalidParameter
        If a name is unknown or is there twice, or a number is outside its range.

    Examples
    --------
    >>> make_noises(["pareto-1.5", "sparse-7"], share=0.2)
    {'pareto-1.5': Pareto(tail=1.5), 'sparse-7': SparseUniform(bound=7.0, share=0.2, deviation=1.0)}
    """
    makers: dict[str, Callable[[float], Noise]] = {
        "pareto": Pareto,
        "student": StudentT,
        "sparse": lambda bound: SparseUniform(bound, share, deviation),
        "gaussian": Gaussian,
    }
    noises: dict[str, Noise] = {}
    for name in [names] if isinstance(names, str) else names:
        if name in noises:
            raise InvalidParameter(f"the noise {name!r} is named twice; name each kind once.")
        noises[name] = _make(name, makers)
    return noises


def add_noise(y: Any, noises: Mapping[str, Noise], rng: Generator) -> NoisyLabels:
    """Add noise to labels: each row gets one of the kinds, all with the same probability.

    The noise of a kind is drawn at once for all of its rows, so `Pareto` noise has mean 0 over the rows that
    have it.

    Parameters
    ----------
    y : array of shape (n,)
        Labels; they stay as they are.
    noises : mapping of str to Noise
        At least one kind, say `NOISES`.
    rng : Generator

    Returns
    -------
    NoisyLabels
        ``(labels, groups)``; ``groups[i] = k`` says that row i has the k-th kind of the mapping.

    Raises
    ------
    InvalidProblem
        If y is not a vector of finite numbers.
    InvalidParameter
        If there is no kind of noise.

    Examples
    --------
    >>> import numpy as np
    >>> labels, groups = add_noise(np.zeros(600), NOISES, np.random.default_rng(0))
    >>> np.bincount(groups).tolist()
    [100, 88, 90, 99, 109, 114]
    """
    if not noises:
        raise InvalidParameter("noises is empty, but at least one kind is required; NOISES has six.")
    labels = _as_labels(y)
    groups = rng.integers(len(noises), size=len(labels))
    for code, noise in enumerate(noises.values()):
        rows = np.flatnonzero(groups == code)
        labels[rows] += noise.draw(len(rows), rng)
    return NoisyLabels(labels, groups)


def _make(name: str, makers: Mapping[str, Callable[[float], Noise]]) -> Noise:
    kind, _, number = str(name).partition("-")
    try:
        value = float(number)
    except ValueError:
        value = None
    if value is None or kind not in makers:
        raise InvalidParameter(
            f"the noise {name!r} is not known; name a kind and a number: pareto-TAIL, student-DF, sparse-BOUND or "
            f"gaussian-DEVIATION, such as {', '.join(_PAPER)}."
        )
    try:
        return makers[kind](value)
    except InvalidParameter as error:
        raise InvalidParameter(f"the noise {name!r} cannot be made: {error}") from error


def _check_above_one(name: str, value: float) -> None:
    if check_positive(name, value) <= 1.0:
        raise InvalidParameter(f"{name}={value!r} is not above 1, so the noise has no mean; use {name} > 1.")


def _check_deviation(value: float) -> None:
    if not np.isfinite(check_real("deviation", value, low=0.0)):
        raise InvalidParameter(f"deviation={value!r} is not finite.")


def _as_labels(y: Any) -> Vector:
    """Return a copy of y, which must be a vector of finite numbers."""
    try:
        n_rows = len(y)
    except TypeError:  # a number
        n_rows = 1
    return check_vector("y", y, n_rows).copy()


_PAPER = ("pareto-1.01", "pareto-2.01", "student-2.5", "student-5", "sparse-5", "sparse-10")

NOISES: dict[str, Noise] = make_noises(_PAPER)
