"""The exception tree, and the checks that every boundary shares."""

import math
from collections.abc import Sequence
from numbers import Integral, Real


class StoicError(Exception):
    """Base class of every error that stoic raises on purpose."""


class InvalidParameter(StoicError, ValueError):  # noqa: N818 - named for what is wrong
    """A setting is outside its range."""


class InvalidProblem(StoicError, ValueError):  # noqa: N818
    """The data or the parts of a problem cannot be used."""


class IncompatibleParts(StoicError, TypeError):  # noqa: N818
    """Parts that are fine by themselves do not fit together."""


class MissingDependency(StoicError, ImportError):  # noqa: N818
    """An optional package is needed and not installed."""


class DamagedFile(StoicError, ValueError):  # noqa: N818
    """A file is not what stoic wrote: cut off, altered, or made by something else."""


class SolveFailed(StoicError, RuntimeError):  # noqa: N818
    """A solve ended without a usable answer, and the caller asked to be told."""


def check_real(name: str, value: object, *, low: float = -math.inf, high: float = math.inf) -> float:
    """Return `value` as a float with low <= value <= high, or raise `InvalidParameter`."""
    if not isinstance(value, Real) or isinstance(value, bool) or not low <= float(value) <= high:
        raise InvalidParameter(f"{name}={value!r} is not a number {_range(low, high)}.")
    return float(value)


def check_positive(name: str, value: object) -> float:
    """Return `value` as a finite float > 0, or raise `InvalidParameter`."""
    number = check_real(name, value)
    if not 0.0 < number < math.inf:
        raise InvalidParameter(f"{name}={value!r} is not a positive finite number.")
    return number


def check_probability(name: str, value: object) -> float:
    """Return `value` as a float strictly between 0 and 1, or raise `InvalidParameter`."""
    number = check_real(name, value)
    if not 0.0 < number < 1.0:
        raise InvalidParameter(f"{name}={value!r} is not strictly between 0 and 1.")
    return number


def check_count(name: str, value: object, *, low: int = 1) -> int:
    """Return `value` as an int >= low, or raise `InvalidParameter`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < low:
        raise InvalidParameter(f"{name}={value!r} is not a whole number >= {low}.")
    return int(value)


def check_one_of(name: str, value: object, allowed: Sequence[object]) -> None:
    """Raise `InvalidParameter` unless `value` is one of those allowed."""
    if not any(value is one or (type(value) is type(one) and value == one) for one in allowed):
        raise InvalidParameter(f"{name}={value!r} is not one of {', '.join(map(repr, allowed))}.")


def _range(low: float, high: float) -> str:
    if math.isinf(high):
        return "that is not NaN" if math.isinf(low) else f">= {low:g}"
    return f"in [{low:g}, {high:g}]"
