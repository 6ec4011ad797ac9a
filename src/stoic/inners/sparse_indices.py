"""Checks of the index arrays of sparse matrices, which SciPy trusts: a wrong one reads and writes other memory."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stoic.errors import InvalidProblem
from stoic.inners.gathered import CSRMatrix

_ADVICE = "if it wrapped around at 2**31, build the matrix with int64 indices"


class _Axes(NamedTuple):
    """The axis that indptr counts, and the one that indices number: their names and sizes."""

    outer: str
    n_outer: int
    inner: str
    n_inner: int


def check_indices(name: str, X: Any) -> None:
    """Raise `InvalidProblem` unless the index arrays of a sparse matrix stay within its entries, rows and columns.

    Parameters
    ----------
    name : str
        What messages call it.
    X : sparse matrix
    """
    if X.ndim != 2:  # which nothing here takes
        return
    if X.format == "coo":
        for axis, (places, size) in enumerate(zip(X.coords, X.shape, strict=True)):
            _check_integers(f"{name}.coords[{axis}]", places)
            _check_length(f"{name}.coords[{axis}]", places, X.data)
            wrong = _first_outside(places, size)
            if wrong is not None:
                raise InvalidProblem(
                    f"{name}.coords[{axis}][{wrong}] = {places[wrong]} is not one of {size}; {_ADVICE}."
                )
    elif X.format in {"csr", "csc", "bsr"}:
        _check_compressed(name, X, _axes_of(X))


def trusted(name: str, X: Any) -> Any:
    """Return what is not sparse as it is, and a checked CSR or CSC matrix with sorted indices, each there once.

    SciPy's own notes of that may be of before the indices changed. A matrix that is sorted is not copied; of one
    that is not, a copy is made, since SciPy would sort the caller's.
    """
    if not sparse.issparse(X):
        return X
    matrix: Any = X
    check_indices(name, X)
    if matrix.format not in {"csr", "csc"} or matrix.ndim != 2:
        return X
    fresh = type(matrix)((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape, copy=False)
    if not fresh.has_canonical_format:
        fresh = fresh.copy()
        fresh.sum_duplicates()
    return fresh


def row_of(X: CSRMatrix, place: int) -> int:
    """Return the row in which an entry of a CSR matrix is."""
    return int(np.searchsorted(X.indptr, place, side="right")) - 1


def _axes_of(X: Any) -> _Axes:
    height, width = X.blocksize if X.format == "bsr" else (1, 1)
    n_rows, n_columns = X.shape[0] // height, X.shape[1] // width
    if X.format == "csc":
        return _Axes("column", n_columns, "row", n_rows)
    return _Axes("row", n_rows, "column", n_columns)


def _check_compressed(name: str, X: Any, axes: _Axes) -> None:
    indptr, n = X.indptr, axes.n_outer
    for part in ("indptr", "indices"):
        _check_integers(f"{name}.{part}", getattr(X, part))
    if len(indptr) != n + 1 or indptr[0] != 0:
        raise InvalidProblem(
            f"{name}.indptr has {len(indptr)} entries that start with {indptr[:1].tolist()}, but a "
            f"{X.format.upper()} matrix of {n} {axes.outer}s needs {n + 1} entries that start with 0; build the "
            f"matrix again."
        )
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        place = int(np.argmax(falls))
        raise InvalidProblem(
            f"{name}.indptr falls from {indptr[place]} to {indptr[place + 1]} at {axes.outer} {place}, but must "
            f"not decrease; {_ADVICE}."
        )
    if np.ndim(X.data) != (3 if X.format == "bsr" else 1) or not indptr[-1] == len(X.indices) == len(X.data):
        raise InvalidProblem(
            f"{name}.indptr ends at {indptr[-1]}, but there are {len(X.indices)} indices and {len(X.data)} data "
            f"of shape {np.shape(X.data)}; the three must agree: call {name}.prune() or build the matrix again."
        )
    wrong = _first_outside(X.indices, axes.n_inner)
    if wrong is not None:
        raise InvalidProblem(
            f"{name}.indices[{wrong}] = {X.indices[wrong]} in {axes.outer} {row_of(X, wrong)} is no {axes.inner} "
            f"of the {axes.n_inner} that {name} has; {_ADVICE}."
        )


def _check_integers(what: str, array: NDArray[Any]) -> None:
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise InvalidProblem(
            f"{what} has dtype {array.dtype} and shape {array.shape}, but one row of whole numbers is required; "
            f"build the matrix again."
        )


def _check_length(what: str, places: NDArray[Any], data: NDArray[Any]) -> None:
    if places.shape != data.shape:
        raise InvalidProblem(
            f"{what} has {len(places)} entries for {len(data)} data; the two must agree: build the matrix again."
        )


def _first_outside(places: NDArray[Any], size: int) -> int | None:
    """Return the first number that is below 0, or not below a size."""
    if len(places) == 0 or (places.min() >= 0 and places.max() < size):
        return None
    return int(np.argmax((places < 0) | (places >= size)))
