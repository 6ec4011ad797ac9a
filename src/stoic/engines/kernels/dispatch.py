"""Dispatch: one function with two bodies, chosen by the type of an argument when a kernel is compiled."""

from collections.abc import Callable
from typing import Any

from numba.extending import overload

Body = Callable[..., Any]


def by_type(kind: type, place: int, body: Body, otherwise: Body) -> Body:
    """Return a function that is `body` where the argument at a place is of a named tuple `kind`, else `otherwise`.

    See `by_types`.
    """
    return by_types(place, {kind: body}, otherwise)


def by_types(place: int, bodies: dict[type, Body], otherwise: Body) -> Body:
    """Return a function with a body for each of some kinds of named tuples, and one for others.

    numba makes the choice when it compiles the caller, at no cost to the compiled code; Python, at the call.

    Parameters
    ----------
    place : int
        Which argument decides.
    bodies : dict of named tuple classes to callables
        Kernels with the same arguments; all keep the way in which they are compiled.
    otherwise : callable

    Returns
    -------
    callable
        To be called by position, from kernels and from Python.
    """

    def chosen(*arguments: Any) -> Any:
        return bodies.get(type(arguments[place]), otherwise)(*arguments)

    @overload(chosen, strict=False, jit_options={"forceinline": True})
    def _chosen(*types: Any) -> Body:
        target: Any = bodies.get(types[place].instance_class, otherwise)
        if getattr(target, "targetoptions", {}).get("forceinline"):  # it stands in the caller anyway
            return target.py_func

        def call(*arguments: Any) -> Any:
            return target(*arguments)

        call.__qualname__ = f"{target.__qualname__}_chosen"  # part of its symbol, which tells it from the others
        return call

    return chosen
