"""Checks of the arguments of `minimize`: the method, the seed, observers and the callback."""

import difflib
from collections.abc import Mapping

import numpy as np
from numpy.random import Generator

from stoic.errors import InvalidParameter
from stoic.solvers import METHODS, Method

_COUNTS = ("samples", "evaluations", "seconds", "stage", "truncated_y", "truncated_z", "duality_gap")


def make_generator(seed: int | Generator | None) -> Generator:
    """Return the generator that a seed stands for."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise InvalidParameter(f"seed={seed!r} is not a whole number >= 0, a Generator or None.") from error


def check_watchers(observers: object, callback: object) -> None:
    """Raise `InvalidParameter` unless observers have names of their own, and all are functions."""
    if callback is not None and not callable(callback):
        raise InvalidParameter(f"callback={callback!r} is not a function.")
    if observers is None:
        return
    if not isinstance(observers, Mapping):
        raise InvalidParameter(f"observers={observers!r} is not a mapping of names to functions of w.")
    for name, observe in observers.items():
        if not callable(observe) or name in _COUNTS:
            raise InvalidParameter(
                f"observers[{name!r}]={observe!r} must be a function under a name other than {', '.join(_COUNTS)}."
            )


def resolve(method: str | Method) -> Method:
    """Return the settings that a method string stands for, or those that were given."""
    if not isinstance(method, str):
        if isinstance(method, type) or not hasattr(method, "tuned"):
            raise InvalidParameter(f"method={method!r} is neither a method string nor a solver's settings.")
        return method
    if method not in METHODS:
        close = difflib.get_close_matches(method.lower(), METHODS, n=1, cutoff=0.4)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise InvalidParameter(f"method={method!r} is unknown; {hint}Methods: {', '.join(sorted(METHODS))}.")
    return METHODS[method]()


def too_small_budget(budget: int, needed: int, method: object) -> str:
    """Return what is wrong with a budget below the first step, and what to do."""
    return (
        f"budget={budget} is below the {needed} samples that {type(method).__name__} draws "
        f"before its first step is done; use budget >= {needed}."
    )
