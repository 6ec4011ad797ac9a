r"""An inner function from a few functions of one's own."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from stoic.checks import check_count, refuse_masks
from stoic.errors import IncompatibleParts, InvalidParameter, InvalidProblem
from stoic.inners.blocks import block_bounds
from stoic.protocols import Array, Vector

Samples: TypeAlias = NDArray[Any] | tuple[NDArray[Any], ...]

_MAX_ENTRIES = 1 << 22  # numbers of per-sample Jacobians held at a time: 32 MB


class FunctionInner:
    r"""The inner function :math:`g(w) = \mathrm E_\xi[g(w; \xi)]` of functions of many samples.

    Samples are an array whose first axis counts them, or a tuple of such arrays, for example (x, y). They
    come from `data`, drawn with replacement, or from a stream `draw`.

    Parameters
    ----------
    value : callable
        ``value(w, samples)`` returns g(w; ξ) of each sample, of shape (n, p).
    jacobian : callable
        ``jacobian(w, samples)`` returns ∇g(w; ξ) of each sample, of shape (n, p, d).
    shape : (int, int)
        (p, d).
    data : array or tuple of arrays, optional
        The samples of a finite sum; with it the exact objective is known.
    draw : callable, optional
        ``draw(size, rng)`` returns `size` fresh samples; needed where there are no data. With both, batches
        come from `draw` and ``everything()`` from the data.
    vjp : callable, optional
        ``vjp(w, samples, q)`` returns zᵀq of shape (d,), z being the mean Jacobian of the samples. By default
        z is formed.

    Raises
    ------
    InvalidParameter
        If there are neither data nor `draw`, or what should be a function is not.
    InvalidProblem
        If the arrays of `data` or of a draw differ in length. From a solve, `Problem.objective` and
        `Problem.gradient`, if a function returns NaN or infinity at an ordinary w; the message names the sample.
    IncompatibleParts
        From any evaluation, if a function returns the wrong shape.

    Examples
    --------
    A problem of one's own, here the variance of xᵀw less its mean:

    >>> import numpy as np
    >>> import stoic
    >>> X = np.array([[0.1, 0.2], [0.3, -0.2], [0.2, 0.3]])
    >>> def value(w, x):
    ...     return np.stack([x @ w, (x @ w) ** 2], axis=1)
    >>> def jacobian(w, x):
    ...     return np.stack([x, 2 * (x @ w)[:, None] * x], axis=1)
    >>> inner = stoic.FunctionInner(value, jacobian, shape=(2, 2), data=X)
    >>> problem = stoic.Problem(inner, stoic.MeanVariance(1.0), stoic.Simplex())
    >>> round(problem.objective(np.array([0.5, 0.5])), 4)
    -0.1433
    """

    def __init__(
        self,
        value: Callable[[Vector, Any], Any],
        jacobian: Callable[[Vector, Any], Any],
        shape: tuple[int, int],
        *,
        data: Any = None,
        draw: Callable[[int, Generator], Any] | None = None,
        vjp: Callable[[Vector, Any, Vector], Any] | None = None,
    ) -> None:
        _check_functions(value=value, jacobian=jacobian, draw=draw, vjp=vjp)
        if data is None and draw is None:
            raise InvalidParameter("there is neither data nor draw, so no samples; give one of them.")
        self._value, self._jacobian, self._draw, self._vjp = value, jacobian, draw, vjp
        self._shape = _check_shape(shape)
        self._data = None if data is None else _check_samples("data", data)
        self._most = max(1, _MAX_ENTRIES // (self._shape[0] * self._shape[1]))  # samples whose Jacobians are held

    def __repr__(self) -> str:
        origin = "a stream" if self.n_samples is None else f"{self.n_samples} samples"
        return f"FunctionInner(shape={self.shape}, {origin})"

    @property
    def shape(self) -> tuple[int, int]:
        """(p, d)."""
        return self._shape

    @property
    def n_samples(self) -> int | None:
        """Number of data points; None for a stream."""
        return None if self._data is None else _count(self._data)

    @property
    def n_unpenalized(self) -> int:
        """0: all coordinates of w are penalized."""
        return 0

    def draw(self, size: int, rng: Generator) -> Samples:
        """Draw `size` samples."""
        if size < 1:
            raise InvalidParameter(f"size={size!r} is not a whole number >= 1.")
        if self._draw is None:
            rows = (rng.random(size) * _count(self._data)).astype(np.intp)  # type: ignore[arg-type]
            return _take(self._data, rows)
        samples = _check_samples("draw(size, rng)", self._draw(size, rng))
        if _count(samples) != size:
            raise IncompatibleParts(f"draw(size={size}, rng) returned {_count(samples)} samples, not {size}.")
        return samples

    def everything(self) -> Samples:
        """Return the data."""
        if self._data is None:
            raise InvalidProblem(f"{self} has no data to go through; give data to know the exact objective.")
        return self._data

    def cost(self, size: int) -> int:
        """Return `size`."""
        return size

    def value(self, w: Vector, batch: Samples, blocks: int = 1) -> Array:
        """Return the block means of g(w; ξ), of shape (blocks, p)."""
        return self._block_means("value", self._value, w, batch, blocks, self._shape[:1])

    def jacobian(self, w: Vector, batch: Samples, blocks: int = 1) -> Array:
        """Return the block means of ∇g(w; ξ), of shape (blocks, p, d)."""
        return self._block_means("jacobian", self._jacobian, w, batch, blocks, self._shape)

    def vjp(self, w: Vector, batch: Samples, q: Vector) -> Vector:
        """Return zᵀq for the mean Jacobian z of the batch."""
        if self._vjp is None:
            product: Vector = q.dot(self.jacobian(w, batch)[0])
            return product
        return _check_returned("vjp(w, samples, q)", self._vjp(w, batch, q), self._shape[1:], "(d,)")

    def take(self, batch: Samples, rows: slice) -> Samples:
        """Return some samples of a batch as a batch."""
        return _take(batch, rows)

    def joined(self, batches: Sequence[Samples]) -> Samples:
        """Return batches as one, one after another."""
        if isinstance(batches[0], tuple):
            return tuple(np.concatenate(parts) for parts in zip(*batches, strict=True))
        return np.concatenate(batches)

    def place(self, batch: Samples, row: int) -> str:
        """Return the origin of a sample of a batch, in words, and whether it holds NaN or infinity."""
        one = _take(batch, slice(row, row + 1))
        if batch is self._data:
            where = f"row {row} of data"
        elif self._draw is None:
            where = f"row {_row_like(self._data, one)} of data"
        else:
            where = f"sample {row} of draw(size={_count(batch)}, rng)"
        return where if _is_finite(one) else f"{where}, which is not finite itself"

    def call(self, name: str) -> str:
        """Return the function that answers value, jacobian or vjp, as it is called."""
        if name == "vjp" and self._vjp is not None:
            return "vjp(w, samples, q)"
        return "value(w, samples)" if name == "value" else "jacobian(w, samples)"

    def _block_means(
        self, name: str, function: Any, w: Vector, batch: Samples, blocks: int, shape: tuple[int, ...]
    ) -> Array:
        """Average over the blocks, in as many calls as keep per-sample answers small."""
        count, most = _count(batch), self._most if len(shape) > 1 else _MAX_ENTRIES // shape[0] or 1
        if blocks == 1 and count <= most:
            mean: Array = np.add.reduce(_evaluate(name, function, w, batch, shape), axis=0)
            mean /= count
            return mean[None]
        bounds = block_bounds(count, blocks)
        if bounds[-1] <= most:
            terms = _evaluate(name, function, w, batch, shape)
            sums = np.add.reduceat(terms, bounds[:-1], axis=0)
        else:
            sums = np.zeros((blocks, *shape))
            for block, (start, stop) in enumerate(pairwise(bounds)):
                for first in range(start, stop, most):
                    part = _take(batch, slice(first, min(first + most, stop)))
                    sums[block] += _evaluate(name, function, w, part, shape).sum(axis=0)
        return sums / np.diff(bounds).reshape(-1, *(1 for _ in shape))


def _evaluate(name: str, function: Any, w: Vector, samples: Samples, shape: tuple[int, ...]) -> Array:
    letters = "(n, p)" if len(shape) == 1 else "(n, p, d)"
    return _check_returned(f"{name}(w, samples)", function(w, samples), (_count(samples), *shape), letters)


def _check_returned(call: str, returned: Any, shape: tuple[int, ...], letters: str) -> Array:
    if type(returned) is np.ndarray and returned.shape == shape and returned.dtype == np.float64:
        return returned  # as most of a step's time would go into looking closer
    refuse_masks(**{call: returned})
    array = np.asarray(returned, dtype=np.float64)
    if array.shape != shape:
        raise IncompatibleParts(f"{call} returned the shape {array.shape}, but {letters} = {shape} is required.")
    return array


def _check_functions(**functions: Any) -> None:
    for name, function in functions.items():
        if not callable(function) and not (function is None and name in ("draw", "vjp")):
            raise InvalidParameter(f"{name}={function!r} is not a function.")


def _check_shape(shape: Any) -> tuple[int, int]:
    if not isinstance(shape, tuple | list) or len(shape) != 2:
        raise InvalidParameter(f"shape={shape!r} is not a pair (p, d): how many outputs, how many variables.")
    return check_count("p of shape", shape[0]), check_count("d of shape", shape[1])


def _check_samples(name: str, samples: Any) -> Samples:
    """Return an array, or a tuple of arrays of one length."""
    refuse_masks(**{name: samples})
    if isinstance(samples, tuple):
        arrays = tuple(np.asarray(part) for part in samples)
        lengths = [part.shape[:1] for part in arrays]
        if not arrays or () in lengths or len(set(lengths)) != 1 or lengths[0] == (0,):
            raise InvalidProblem(
                f"the arrays of {name} have the shapes {[part.shape for part in arrays]}; the first axis "
                f"of each must count the same samples, at least one."
            )
        return arrays
    array = np.asarray(samples)
    if array.ndim == 0 or len(array) == 0:
        raise InvalidProblem(f"{name} has shape {array.shape}; its first axis must count samples, at least one.")
    return array


def _count(samples: Samples) -> int:
    return len(samples[0]) if isinstance(samples, tuple) else len(samples)


def _take(samples: Any, rows: Any) -> Samples:
    return tuple(part[rows] for part in samples) if isinstance(samples, tuple) else samples[rows]


def _parts(samples: Any) -> tuple[NDArray[Any], ...]:
    return samples if isinstance(samples, tuple) else (samples,)


def _row_like(data: Any, one: Samples) -> int:
    """Return the first row of the data that is, bit for bit, a sample that was drawn from them."""
    alike = np.ones(_count(data), dtype=bool)
    for part, wanted in zip(_parts(data), _parts(one), strict=True):
        rows, row = (np.ascontiguousarray(array).reshape(len(array), -1) for array in (part, wanted))
        is_nan = np.not_equal(rows, rows) & np.not_equal(row, row)
        alike &= ((rows == row) | is_nan).all(axis=1)
    return int(np.argmax(alike))


def _is_finite(samples: Samples) -> bool:
    return all(part.dtype.kind not in "fc" or bool(np.isfinite(part).all()) for part in _parts(samples))
