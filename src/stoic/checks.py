"""Checks of parameters that every boundary shares: what was given, what is required."""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Annotated, Any, Literal, get_args, get_origin

import numpy as np

from stoic.errors import InvalidParameter, InvalidProblem


def check_real(name: str, value: object, *, low: float = -math.inf, high: float = math.inf) -> float:
    """Return `value` as a float with low <= value <= high, or raise `InvalidParameter`."""
    if not isinstance(value, Real) or isinstance(value, bool) or not low <= float(value) <= high:
        raise InvalidParameter(f"{name}={value!r} is not a number{_range(low, high)}.")
    return float(value)


def check_finite(name: str, value: object) -> float:
    """Return `value` as a finite float, or raise `InvalidParameter`."""
    number = check_real(name, value)
    if math.isinf(number):
        raise InvalidParameter(f"{name}={value!r} is not finite.")
    return number


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


def refuse_masks(**arrays: object) -> None:
    """Raise `InvalidProblem` if an array, or one in a list, is masked in part: what lies there would be used.

    Examples
    --------
    >>> refuse_masks(y=np.ma.array([1.0, 2.0], mask=[False, True]))
    Traceback (most recent call last):
    stoic.errors.InvalidProblem: y has masked entries; remove their rows or fill them in.
    """
    for name, array in arrays.items():
        parts = array if isinstance(array, list | tuple) else (array,)
        if any(isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in parts):
            raise InvalidProblem(f"{name} has masked entries; remove their rows or fill them in.")


def _range(low: float, high: float) -> str:
    if math.isinf(high):
        return "" if math.isinf(low) else f" >= {low:g}"
    return f" in [{low:g}, {high:g}]"


Positive = Annotated[float, check_positive]
"""A finite number above 0."""

Count = Annotated[int, check_count]
"""A whole number, 1 or more."""

Probability = Annotated[float, check_probability]
"""A number strictly between 0 and 1."""


def check_annotated(name: str, value: object, annotation: Any) -> None:
    """Raise `InvalidParameter` unless a value passes the checks in its annotation; one without checks takes all.

    ``Annotated[float, check]`` calls ``check(name, value)``; ``Literal`` allows what it lists.

    Examples
    --------
    >>> check_annotated("step_size", 0.5, Positive)
    >>> check_annotated("answer", "first", Literal["average", "last"])
    Traceback (most recent call last):
    stoic.errors.InvalidParameter: answer='first' is not 'average' or 'last'.
    """
    if get_origin(annotation) is Literal and value not in get_args(annotation):
        raise InvalidParameter(f"{name}={value!r} is not {' or '.join(map(repr, get_args(annotation)))}.")
    for check in getattr(annotation, "__metadata__", ()):
        check(name, value)
