"""Rows of X, dense or CSR: products with a vector, and their sum into one."""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class CSR(NamedTuple):
    """The three arrays of a CSR matrix; indices are unsigned, so that no index is tested for a negative value."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]


class Dense(NamedTuple):
    """A matrix in C order."""

    values: NDArray[Any]


def dot(X: Any, row: int, u: Floats) -> float:
    """Return x·u for one row x."""
    columns, values = _entries(X, row)
    return float(values @ u[columns])


def squared_norm(X: Any, row: int, work: Floats) -> float:
    """Return ‖x‖² for one row x; `work` is zero before and after (entries that share a column add up there)."""
    columns, values = _entries(X, row)
    np.add.at(work, columns, values)
    total = float(work @ work)
    work[columns] = 0.0
    return total


def push(X: Any, row: int, factor: float, u: Floats, h: Floats, share: float) -> float:
    """Add factor·x to u and share·factor·x to h; return the change of ‖u‖²."""
    columns, values = _entries(X, row)
    before = u @ u
    np.add.at(u, columns, factor * values)
    np.add.at(h, columns, share * factor * values)
    return float(u @ u - before)


def clear(X: Any, row: int, u: Floats) -> None:
    """Set u to zero where the row x has entries."""
    u[_entries(X, row)[0]] = 0.0


def _entries(X: Any, row: int) -> tuple[Any, NDArray[Any]]:
    if isinstance(X, Dense):
        return slice(None), X.values[row].astype(np.float64)
    part = slice(int(X.indptr[row]), int(X.indptr[row + 1]))
    return X.indices[part], X.data[part].astype(np.float64)


@overload(dot, inline="never")
def _dot(X: Any, row: int, u: Floats) -> Any:
    if X.instance_class is CSR:

        def sparse(X: Any, row: int, u: Floats) -> float:
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

        return sparse

    def dense(X: Any, row: int, u: Floats) -> float:
        x = X.values[row]
        n = np.uint64(x.size)
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        k = np.uint64(0)
        while k + np.uint64(7) < n:
            s0 += x[k] * u[k]
            s1 += x[k + np.uint64(1)] * u[k + np.uint64(1)]
            s2 += x[k + np.uint64(2)] * u[k + np.uint64(2)]
            s3 += x[k + np.uint64(3)] * u[k + np.uint64(3)]
            s4 += x[k + np.uint64(4)] * u[k + np.uint64(4)]
            s5 += x[k + np.uint64(5)] * u[k + np.uint64(5)]
            s6 += x[k + np.uint64(6)] * u[k + np.uint64(6)]
            s7 += x[k + np.uint64(7)] * u[k + np.uint64(7)]
            k += np.uint64(8)
        while k < n:
            s0 += x[k] * u[k]
            k += np.uint64(1)
        return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))

    return dense


@overload(squared_norm, inline="never")
def _squared_norm(X: Any, row: int, work: Floats) -> Any:
    if X.instance_class is CSR:

        def sparse(X: Any, row: int, work: Floats) -> float:
            total = 0.0
            first, stop = np.uint64(X.indptr[row]), np.uint64(X.indptr[row + 1])
            for k in range(first, stop):
                value = np.float64(X.data[k])
                old = work[X.indices[k]]
                total += value * (2.0 * old + value)
                work[X.indices[k]] = old + value
            for k in range(first, stop):
                work[X.indices[k]] = 0.0
            return total

        return sparse

    def dense(X: Any, row: int, work: Floats) -> float:
        total = 0.0
        for value in X.values[row]:
            total += np.float64(value) * np.float64(value)
        return total

    return dense


@overload(push, inline="never")
def _push(X: Any, row: int, factor: float, u: Floats, h: Floats, share: float) -> Any:
    if X.instance_class is CSR:

        def sparse(X: Any, row: int, factor: float, u: Floats, h: Floats, share: float) -> float:
            indices, data = X.indices, X.data
            gain0 = gain1 = 0.0
            k, stop = np.uint64(X.indptr[row]), np.uint64(X.indptr[row + 1])
            while k + np.uint64(1) < stop:
                i, step = indices[k], factor * data[k]
                old = u[i]
                new = old + step
                gain0 += step * (new + old)
                u[i] = new
                h[i] += share * step
                i, step = indices[k + np.uint64(1)], factor * data[k + np.uint64(1)]
                old = u[i]
                new = old + step
                gain1 += step * (new + old)
                u[i] = new
                h[i] += share * step
                k += np.uint64(2)
            if k < stop:
                i, step = indices[k], factor * data[k]
                old = u[i]
                new = old + step
                gain0 += step * (new + old)
                u[i] = new
                h[i] += share * step
            return gain0 + gain1

        return sparse

    def dense(X: Any, row: int, factor: float, u: Floats, h: Floats, share: float) -> float:
        x = X.values[row]
        n = np.uint64(x.size)
        g0 = g1 = g2 = g3 = 0.0  # ‖u + fx‖² − ‖u‖² = f·Σ x(2u + fx)
        k = np.uint64(0)
        while k + np.uint64(3) < n:
            g0 += x[k] * (2.0 * u[k] + factor * x[k])
            g1 += x[k + np.uint64(1)] * (2.0 * u[k + np.uint64(1)] + factor * x[k + np.uint64(1)])
            g2 += x[k + np.uint64(2)] * (2.0 * u[k + np.uint64(2)] + factor * x[k + np.uint64(2)])
            g3 += x[k + np.uint64(3)] * (2.0 * u[k + np.uint64(3)] + factor * x[k + np.uint64(3)])
            k += np.uint64(4)
        while k < n:
            g0 += x[k] * (2.0 * u[k] + factor * x[k])
            k += np.uint64(1)
        both = share * factor
        for j in range(n):
            u[j] += factor * x[j]
            h[j] += both * x[j]
        return factor * ((g0 + g1) + (g2 + g3))

    return dense


@overload(clear, inline="never")
def _clear(X: Any, row: int, u: Floats) -> Any:
    if X.instance_class is CSR:

        def sparse(X: Any, row: int, u: Floats) -> None:
            for k in range(np.uint64(X.indptr[row]), np.uint64(X.indptr[row + 1])):
                u[X.indices[k]] = 0.0

        return sparse

    def dense(X: Any, row: int, u: Floats) -> None:
        u[:] = 0.0

    return dense
