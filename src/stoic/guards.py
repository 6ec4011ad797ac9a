"""Guards of the user's functions: NaN and infinity are an overflow, or an error that names the sample."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol

import numpy as np

from stoic.errors import InvalidProblem
from stoic.protocols import AnyInner, Array, Outer, Regularizer, Vector

HUGE = 1e100  # beyond it numbers are on their way to infinity: no unit of anything needs it

_Function = Callable[[Vector], Any]


class PerSample(Protocol):
    """An inner part that knows its samples one by one, as `FunctionInner` does."""

    def take(self, batch: Any, rows: slice) -> Any:
        """Return some samples of a batch as a batch."""
        ...

    def place(self, batch: Any, row: int) -> str:
        """Return the origin of a sample of a batch, in words."""
        ...

    def call(self, name: str) -> str:
        """Return the user's function behind one of value, jacobian and vjp, as it is called."""
        ...


def is_foreign(part: object) -> bool:
    """Whether a part, or the loss that it applies, is not this library's own."""
    if not _is_own(type(part).__module__) or hasattr(part, "place"):
        return True
    return any(is_foreign(getattr(part, name)) for name in ("loss", "regularizer") if hasattr(part, name))


@cache
def _is_own(module: str) -> bool:
    return module.partition(".")[0] == __name__.partition(".")[0]


def is_finite(returned: Any) -> bool:
    """Whether no entry is infinite or NaN, by one sum; a sum of finite numbers may overflow as well."""
    return math.isfinite(np.add.reduce(returned, axis=None))


def is_ordinary(point: Vector) -> bool:
    """Whether a point is finite and nowhere beyond 1e100."""
    return bool(np.abs(point).max(initial=0.0) <= HUGE)


def overflows(function: _Function, start: Vector, point: Vector) -> bool:
    """Whether a function that is finite at `start` and not at `point` grew too large in between.

    Between the two, the last point at which it is still finite is found by bisection. A function that overflows
    has passed 1e100 there; one that is not defined beyond that point has not.

    Examples
    --------
    >>> start, point = np.zeros(1), np.array([1e3])
    >>> with np.errstate(all="ignore"):
    ...     overflows(np.exp, start, point), overflows(lambda w: np.sqrt(1.0 - w), start, point)
    (True, False)
    """
    low, high, reached = 0.0, 1.0, np.asarray(function(start))
    for _ in range(_MOST_BISECTIONS):
        if high - low <= _NEAR * high:
            break
        middle = 0.5 * (low + high)
        found = np.asarray(function(start + middle * (point - start)))
        if np.isfinite(found).all():
            low, reached = middle, found
        else:
            high = middle
    return bool(np.abs(reached).max(initial=0.0) > HUGE)


_MOST_BISECTIONS, _NEAR = 400, 1e-6
_MOST_ENTRIES = 1 << 24  # of the Jacobians of single samples: 128 MB


class InnerGuard:
    r"""A guard of the user's inner part: where it is not finite, a broken function is told from divergence.

    A value, Jacobian or product with an infinite or NaN entry at w is traced to the sample ξ that it comes from,
    and the function of that sample alone decides:

    - it is not finite at the start w₀ either: the sample or the function is broken, `InvalidProblem`;
    - w has an entry beyond 1e100, or the function passes 1e100 on the way from w₀ to w before it ends: finite
      functions overflow since w is too far away. Nothing is raised, and the solve ends as diverged;
    - else it is not defined at w, an ordinary point that the method has come to: `InvalidProblem`.

    Points that a pilot or a line search tries out, and may leave again, are held to the first rule only.

    Parameters
    ----------
    inner : Inner
        A part of the user's own.
    start : ndarray of shape (d,)
        w₀.
    """

    def __init__(self, inner: AnyInner, start: Vector) -> None:
        self._inner, self._start, self._is_trying = inner, start, False

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Hold all points to the first rule only, for a while."""
        before, self._is_trying = self._is_trying, True
        try:
            yield
        finally:
            self._is_trying = before

    def check(
        self,
        name: str,
        returned: Array,
        w: Vector,
        batch: Any,
        size: int | None = None,
        *,
        q: Vector | None = None,
        is_trial: bool = False,
    ) -> None:
        """Raise `InvalidProblem` if what `name` returned for a batch is not finite, and no overflow.

        `size` is what was drawn; None stands for all data.
        """
        if is_finite(returned) or not is_ordinary(w):
            return
        with np.errstate(all="ignore"):
            where, function = self._culprit(name, w, batch, size, q)
            kind = _kind(function(w))
            if kind is None:  # each sample is finite, and only their sum is not
                return
            is_broken = _kind(function(self._start)) is not None
            if not is_broken and (is_trial or self._is_trying or overflows(function, self._start, w)):
                return
        raise InvalidProblem(self._message(name, kind, where, None if is_broken else w))

    def _culprit(
        self, name: str, w: Vector, batch: Any, size: int | None, q: Vector | None
    ) -> tuple[str, _Function]:
        """Return the origin of the first sample that is not finite, in words, and the function of it alone."""
        extra = () if q is None else (q,)
        evaluate = getattr(self._inner, name)
        if hasattr(self._inner, "place"):
            inner: Any = self._inner
            count: int = size or inner.n_samples
            row = _first_bad(lambda rows: _kind(evaluate(w, inner.take(batch, rows), *extra)) is not None, count)
            one = inner.take(batch, slice(row, row + 1))
            return inner.place(batch, row), lambda point: evaluate(point, one, *extra)
        each = name if q is None else "jacobian"  # a product has no samples, but the Jacobian behind it does
        found = None if size is None else self._row(each, w, batch, size)
        if found is None:
            where = "all data" if size is None else f"a batch of {size} samples"
            return where, lambda point: evaluate(point, batch, *extra)
        of_each = getattr(self._inner, each)
        return f"sample {found} of a draw of {size}", lambda point: of_each(point, batch, size)[found]

    def _row(self, name: str, w: Vector, batch: Any, size: int) -> int | None:
        """Return the first sample of a draw that is not finite, where one sample a block can be asked for."""
        if size * math.prod(self._inner.shape) > _MOST_ENTRIES:
            return None
        try:
            means = getattr(self._inner, name)(w, batch, size)
        except ValueError:
            return None
        is_bad = ~np.isfinite(means).reshape(len(means), -1).all(axis=1)
        return int(np.argmax(is_bad)) if is_bad.any() else None

    def _message(self, name: str, kind: str, where: str, w: Vector | None) -> str:
        call = getattr(self._inner, "call", lambda name: f"{name} of {self._inner!r}")(name)
        if w is None:
            return (
                f"{call} returned {kind} for {where}, and does so at the start too; correct the function, or drop "
                "that sample."
            )
        far = float(np.linalg.norm(w - self._start))
        return (
            f"{call} returned {kind} for {where}, at a w that is {far:.3g} away from the start; at the start it "
            "is finite. Change the function so that it is finite for every w, or keep w where it is, by a "
            "regularizer such as Box or by a smaller step size."
        )


def _kind(returned: Any) -> str | None:
    """Return "nan" or "inf", whichever is among the numbers; None if neither."""
    if np.isfinite(returned).all():
        return None
    return "nan" if np.isnan(returned).any() else "inf"


def _first_bad(is_bad: Callable[[slice], bool], size: int) -> int:
    """Return the number of a bad one of `size` samples, by halving: some part of them is known to be bad."""
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_bad(slice(low, middle)) else (middle, high)
    return low


class GuardedOuter:
    """An outer function of the user's own, which must be finite where its argument is.

    Where it is not, the rules are those of `InnerGuard`, u in the place of w, and the last u at which the function
    was finite in the place of the start. Values are only asked for at points that are tried out.
    """

    def __init__(self, outer: Outer) -> None:
        self._outer = outer
        self._finite_at: dict[str, Vector] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._outer, name)

    def __repr__(self) -> str:
        return repr(self._outer)

    def value(self, u: Vector) -> float:
        """Return f(u)."""
        returned = self._outer.value(u)
        self._check("value", returned, u)
        return returned

    def gradient(self, u: Vector) -> Vector:
        """Return ∇f(u)."""
        returned = self._outer.gradient(u)
        self._check("gradient", returned, u)
        return returned

    def _check(self, name: str, returned: Any, u: Vector) -> None:
        if is_finite(returned):
            self._finite_at[name] = u
            return
        kind, start = _kind(returned), self._finite_at.get(name)
        if kind is None or not is_ordinary(u):
            return
        with np.errstate(all="ignore"):
            if start is not None and (name == "value" or overflows(getattr(self._outer, name), start, u)):
                return
        raise InvalidProblem(
            f"{name}(u) of the outer function {self._outer!r} returned {kind} for u = {_shown(u)}; it must be "
            "finite for every u that the inner part may return."
        )


class GuardedRegularizer:
    """A regularizer of the user's own: its prox is finite wherever its argument is, and its value is never NaN."""

    def __init__(self, regularizer: Regularizer) -> None:
        self._regularizer = regularizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._regularizer, name)

    def __repr__(self) -> str:
        return repr(self._regularizer)

    def value(self, w: Vector) -> float:
        """Return r(w)."""
        returned = self._regularizer.value(w)
        if math.isnan(returned) and is_ordinary(w):
            raise InvalidProblem(f"value(w) of the regularizer {self!r} returned nan for w = {_shown(w)}.")
        return returned

    def prox(self, v: Vector, step: float) -> Vector:
        """Return the minimizer of r(w) + ‖w − v‖² / (2 step)."""
        returned = self._regularizer.prox(v, step)
        kind = None if is_finite(returned) else _kind(returned)
        if kind is not None and is_ordinary(v):
            raise InvalidProblem(
                f"prox(v, step) of the regularizer {self!r} returned {kind} for v = {_shown(v)} and "
                f"step = {step:.3g}; it must be finite for every v and every step > 0."
            )
        return returned


def _shown(vector: Vector) -> str:
    return np.array2string(vector, precision=3, threshold=6, edgeitems=2)
