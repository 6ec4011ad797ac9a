"""Rows of X, dense or CSR: products with a vector, and their sum into one."""

from typing import Any, NamedTuple, cast

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from stoic.engines.kernels.dispatch import Body, by_types
from stoic.engines.kernels.jit import fused, inlined, kernel, reordered

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_intrinsic, _cgutils = cast("Any", intrinsic), cast("Any", cgutils)  # typed in part


class CSR(NamedTuple):
    """The three arrays of a CSR matrix; indices are unsigned, so that no index is tested for a negative value.

    `is_distinct` says that no row has a column twice; entries that share one count as their sum.
    """

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    is_distinct: bool = False


class Dense(NamedTuple):
    """A matrix in C order."""

    values: NDArray[Any]


class Standardized(NamedTuple):
    """A matrix in C order with columns (x − center)·scale, which are not formed."""

    values: NDArray[Any]
    center: Floats
    scale: Floats


def csr_rows(X: Any) -> CSR:
    """Return the arrays of a SciPy CSR matrix, read-only, without a copy."""
    indices = X.indices.view(f"u{X.indices.dtype.itemsize}")
    return CSR(read_only(X.indptr), read_only(indices), read_only(X.data), bool(X.has_canonical_format))


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to: kernels then compile once, whatever they are given."""
    view = array.view()
    view.flags.writeable = False
    return view


def fetch(array: NDArray[Any], place: Any) -> None:
    """Ask the processor to have a place of an array in its second cache soon; it need not be within the array."""


@overload(fetch, strict=False)
def _fetch(array: NDArray[Any], place: Any) -> Any:
    return lambda array, place: _prefetch(array, place)


@_intrinsic  # type: ignore[untyped-decorator]
def _prefetch(_context: Any, array: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = _cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(function, [address, word(0), word(2), word(1)])  # to read, into the second cache, data
        return context.get_dummy_value()

    return types.void(array, place), generate


def by_storage(sparse: Body, dense: Body, standardized: Body | None = None, place: int = 0) -> Body:
    """Return a function of rows X, the argument at a place: `sparse` for a CSR matrix, `dense` for an array.

    For columns that are centered and scaled it is `standardized`, where there is such a body.
    """
    return by_types(place, {CSR: sparse} | ({} if standardized is None else {Standardized: standardized}), dense)


@reordered
def standardized_dot(x: NDArray[Any], center: Floats, scale: Floats, u: Floats) -> float:
    """Return (x − center)·scale·u."""
    total = 0.0
    for k in range(np.uint64(x.size)):
        total += (np.float64(x[k]) - center[k]) * scale[k] * u[k]
    return total


@reordered
def standardized_push(x: NDArray[Any], center: Floats, scale: Floats, factor: float, u: Floats) -> float:
    """Add factor·(x − center)·scale to u; return the change of ‖u‖² over factor."""
    gain = 0.0
    for k in range(np.uint64(x.size)):
        value, old = (np.float64(x[k]) - center[k]) * scale[k], u[k]
        new = old + factor * value
        gain += value * (old + new)
        u[k] = new
    return gain


@reordered
def vector_dot(x: NDArray[Any], u: Floats) -> float:
    """Return x·u."""
    total = 0.0
    for k in range(np.uint64(x.size)):
        total += np.float64(x[k]) * u[k]
    return total


@reordered
def vector_push(x: NDArray[Any], factor: float, u: Floats) -> float:
    """Add factor·x to u; return the change of ‖u‖² over factor."""
    gain = 0.0
    for k in range(np.uint64(x.size)):
        value, old = np.float64(x[k]), u[k]
        new = old + factor * value
        gain += value * (old + new)
        u[k] = new
    return gain


# --- x·u ---


@fused
def dot_csr(X: CSR, row: int, u: Floats) -> float:
    """Return x·u for one row x, in four sums."""
    indices, data = X.indices, X.data
    k, stop = np.uint64(X.indptr[row]), np.uint64(X.indptr[row + 1])
    s0 = s1 = s2 = s3 = 0.0
    while k + np.uint64(3) < stop:
        s0 += data[k] * u[indices[k]]
        s1 += data[k + np.uint64(1)] * u[indices[k + np.uint64(1)]]
        s2 += data[k + np.uint64(2)] * u[indices[k + np.uint64(2)]]
        s3 += data[k + np.uint64(3)] * u[indices[k + np.uint64(3)]]
        k += np.uint64(4)
    while k < stop:
        s0 += data[k] * u[indices[k]]
        k += np.uint64(1)
    return (s0 + s1) + (s2 + s3)


@inlined
def dot_dense(X: Dense, row: int, u: Floats) -> float:
    """Return x·u for one row x."""
    return vector_dot(X.values[row], u)


@inlined
def dot_standardized(X: Standardized, row: int, u: Floats) -> float:
    """Return x·u for one row x."""
    return standardized_dot(X.values[row], X.center, X.scale, u)


dot = by_storage(dot_csr, dot_dense, dot_standardized)
"""Return x·u for one row x: dot(X, row, u)."""


# --- xᵀZ ---


@kernel
def products_csr(X: CSR, row: int, Z: Floats, out: Floats) -> None:
    """Write xᵀZ into out."""
    p = np.uint64(out.size)
    for i in range(p):
        out[i] = 0.0
    for k in range(np.uint64(X.indptr[row]), np.uint64(X.indptr[row + 1])):
        value, column = np.float64(X.data[k]), X.indices[k]
        for i in range(p):
            out[i] += value * Z[column, i]


@kernel
def products_dense(X: Dense, row: int, Z: Floats, out: Floats) -> None:
    """Write xᵀZ into out."""
    x, p = X.values[row], np.uint64(out.size)
    for i in range(p):
        out[i] = 0.0
    for k in range(np.uint64(x.size)):
        for i in range(p):
            out[i] += x[k] * Z[k, i]


@kernel
def products_standardized(X: Standardized, row: int, Z: Floats, out: Floats) -> None:
    """Write xᵀZ into out."""
    x, p = X.values[row], np.uint64(out.size)
    for i in range(p):
        out[i] = 0.0
    for k in range(np.uint64(x.size)):
        value = (x[k] - X.center[k]) * X.scale[k]
        for i in range(p):
            out[i] += value * Z[k, i]


products = by_storage(products_csr, products_dense, products_standardized)
"""Write xᵀZ for one row x and a matrix Z (d, p) into out: products(X, row, Z, out)."""


# --- ‖x‖² ---


@kernel
def squared_norm_csr(X: CSR, row: int, work: Floats) -> float:
    """Return ‖x‖²; entries that share a column add up in `work`."""
    total = 0.0
    first, stop = np.uint64(X.indptr[row]), np.uint64(X.indptr[row + 1])
    if X.is_distinct:
        for k in range(first, stop):
            total += np.float64(X.data[k]) * np.float64(X.data[k])
        return total
    for k in range(first, stop):
        value = np.float64(X.data[k])
        old = work[X.indices[k]]
        total += value * (2.0 * old + value)
        work[X.indices[k]] = old + value
    for k in range(first, stop):
        work[X.indices[k]] = 0.0
    return total


@kernel
def squared_norm_dense(X: Dense, row: int, work: Floats) -> float:
    """Return ‖x‖²."""
    total = 0.0
    for value in X.values[row]:
        total += np.float64(value) * np.float64(value)
    return total


@kernel
def squared_norm_standardized(X: Standardized, row: int, work: Floats) -> float:
    """Return ‖x‖²."""
    total, x = 0.0, X.values[row]
    for k in range(np.uint64(x.size)):
        value = (np.float64(x[k]) - X.center[k]) * X.scale[k]
        total += value * value
    return total


squared_norm = by_storage(squared_norm_csr, squared_norm_dense, squared_norm_standardized)
"""Return ‖x‖² for one row x: squared_norm(X, row, work); `work` (d,) is zero before and after."""


# --- u + factor·x ---


@fused
def push_csr(X: CSR, row: int, factor: float, u: Floats, following: int = -1) -> float:
    """Add factor·x to u, two entries at a time."""
    indices, data = X.indices, X.data
    gain0 = gain1 = 0.0
    k, stop = np.uint64(X.indptr[row]), np.uint64(X.indptr[row + 1])
    ahead = np.uint64(X.indptr[max(0, following)])
    end = np.uint64(X.indptr[following + 1])
    while k + np.uint64(7) < stop:
        fetch(data, ahead)
        fetch(indices, ahead)
        ahead = min(ahead + np.uint64(8), end)
        for _ in range(4):
            x, i = data[k], indices[k]
            old = u[i]
            u[i] = old + factor * x
            gain0 += x * (old + (old + factor * x))
            x, i = data[k + np.uint64(1)], indices[k + np.uint64(1)]
            old = u[i]
            u[i] = old + factor * x
            gain1 += x * (old + (old + factor * x))
            k += np.uint64(2)
    while k < stop:
        x, i = data[k], indices[k]
        old = u[i]
        u[i] = old + factor * x
        gain0 += x * (old + (old + factor * x))
        k += np.uint64(1)
    while ahead < end:
        fetch(data, ahead)
        fetch(indices, ahead)
        ahead += np.uint64(8)
    return factor * (gain0 + gain1)


@fused
def push_dense(X: Dense, row: int, factor: float, u: Floats, following: int = -1) -> float:
    """Add factor·x to u."""
    ahead = X.values[following if following >= 0 else row]
    for j in range(np.uint64(0), np.uint64(ahead.size), np.uint64(8)):
        fetch(ahead, j)
    return factor * vector_push(X.values[row], factor, u)


@fused
def push_standardized(X: Standardized, row: int, factor: float, u: Floats, following: int = -1) -> float:
    """Add factor·x to u."""
    ahead = X.values[following if following >= 0 else row]
    for j in range(np.uint64(0), np.uint64(ahead.size), np.uint64(8)):
        fetch(ahead, j)
    return factor * standardized_push(X.values[row], X.center, X.scale, factor, u)


push = by_storage(push_csr, push_dense, push_standardized)
"""Add factor·x to u and return the change of ‖u‖²: push(X, row, factor, u, following=-1).

The row that follows, if any, is fetched into the cache.
"""


# --- u = 0 where x has entries ---


@kernel
def clear_csr(X: CSR, row: int, u: Floats) -> None:
    """Set u to zero where x has entries."""
    for k in range(np.uint64(X.indptr[row]), np.uint64(X.indptr[row + 1])):
        u[X.indices[k]] = 0.0


@kernel
def clear_dense(X: Dense, row: int, u: Floats) -> None:
    """Set u to zero."""
    u[:] = 0.0


clear = by_storage(clear_csr, clear_dense)
"""Set u to zero where the row x has entries: clear(X, row, u)."""
