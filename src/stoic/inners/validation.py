"""Checks of input data; errors name the row, the column and the remedy."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stoic.checks import refuse_masks
from stoic.errors import InvalidProblem
from stoic.inners.blocks import IntArray
from stoic.inners.designs import DenseMatrix, Matrix
from stoic.inners.gathered import CSRMatrix
from stoic.inners.sparse_indices import check_indices, row_of
from stoic.protocols import Vector

_CHUNK = 1 << 20  # numbers looked at a time when the place of a bad one is sought


def check_matrix(name: str, X: Any) -> Matrix:
    """Return `X` as an array or CSR matrix of finite float64 or float32, without a copy if it is one.

    Parameters
    ----------
    name : str
        What messages call it.
    X : array, data frame or sparse matrix of shape (n, columns)

    Returns
    -------
    array or CSR matrix

    Raises
    ------
    InvalidProblem
        If X is not a matrix of finite numbers with at least one row and one column, or its CSR arrays are
        damaged.
    """
    matrix: Any = X if sparse.issparse(X) else _as_array(name, X)
    _check_shape(name, matrix.shape)
    if isinstance(matrix, np.ndarray):
        return _check_dense(name, matrix, X)
    check_indices(name, matrix)
    return _check_sparse_entries(name, _as_floats(name, matrix.tocsr()))


def check_vector(name: str, values: Any, n_rows: int) -> Vector:
    """Return `values` as a float64 array of shape (n_rows,) with finite entries, or raise."""
    array = _as_array(name, values)
    if array.ndim != 1:
        advice = (
            f"give {name}.ravel()" if array.size == n_rows else f"give one number for each row of X ({n_rows})"
        )
        raise InvalidProblem(f"{name} has shape {array.shape}, but one dimension is required; {advice}.")
    check_length(name, len(array), n_rows)
    numbers: Vector = _as_floats(name, array).astype(np.float64, copy=False)
    bad = _first_not_finite(numbers)
    if bad is not None:
        raise InvalidProblem(f"{name}[{bad[0]}] is {numbers[bad]}; remove the row or fill it in.")
    return numbers


def check_by_column(name: str, values: Any, n_columns: int) -> Vector:
    """Return `values` as a float64 array of finite numbers, one for each column, or raise."""
    numbers: Vector = _as_floats(name, _as_array(name, values)).astype(np.float64, copy=False)
    if numbers.shape != (n_columns,):
        raise InvalidProblem(
            f"{name} has shape {numbers.shape}, but X has {n_columns} columns; give one number for each column."
        )
    bad = _first_not_finite(numbers)
    if bad is not None:
        raise InvalidProblem(
            f"{name}[{bad[0]}] is {numbers[bad]}, but a finite number is required for each column."
        )
    return numbers


def check_scale(scale: Any, n_columns: int) -> Vector:
    """Return the scales of the columns, all of them positive."""
    numbers = check_by_column("scale", scale, n_columns)
    if numbers.min() <= 0.0:
        column = int(np.argmax(numbers <= 0.0))
        raise InvalidProblem(
            f"scale[{column}] = {numbers[column]:g}; scales must be > 0: give 1 for a constant column."
        )
    return numbers


def check_weight(sample_weight: Any, codes: IntArray, labels: NDArray[Any]) -> Vector:
    """Return the weights of the rows: none negative, and in each group one that is positive."""
    weight = check_vector("sample_weight", sample_weight, len(codes))
    if weight.min() < 0.0:
        row = int(np.argmax(weight < 0.0))
        raise InvalidProblem(f"sample_weight[{row}] = {weight[row]:g} is negative; weights must be >= 0.")
    n_positive = np.bincount(codes, weight > 0.0, len(labels))
    if not n_positive.all():
        label = labels[int(np.argmin(n_positive))]
        raise InvalidProblem(
            f"all rows of group {label!s} have a sample_weight of zero, so its mean is not defined; "
            f"leave the group out or give one of its rows a weight."
        )
    return weight


def check_sizes(name: str, X: Matrix, given: Matrix, largest: float) -> None:
    """Raise `InvalidProblem` if an entry of X is larger than `largest`; the message has it as it was given."""
    values: Any = X if isinstance(X, np.ndarray) else X.data
    if max(float(values.max(initial=0.0)), -float(values.min(initial=0.0))) <= largest:
        return
    place = int(np.argmax(np.abs(values)))
    row, column = divmod(place, X.shape[1]) if values is X else (row_of(X, place), int(X.indices[place]))
    raise InvalidProblem(
        f"{name} is {given[row, column]:g} in row {row}, column {column}, too large to compute with; correct or "
        f"remove the row, or let fit scale its column by standardize=True."
    )


def check_length(name: str, length: int, n_rows: int) -> None:
    """Raise `InvalidProblem` unless there is one entry for each row of X."""
    if length != n_rows:
        raise InvalidProblem(f"{name} has {length} entries, but X has {n_rows} rows; give one entry for each row.")


def _check_shape(name: str, shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        advice = f"; give {name}.reshape(-1, 1) if it is one column" if len(shape) == 1 else ""
        raise InvalidProblem(f"{name} has shape {shape}, but (rows, columns) is required{advice}.")
    if 0 in shape:
        raise InvalidProblem(f"{name} has shape {shape}, but at least one row and one column are required.")


def _check_dense(name: str, array: NDArray[Any], given: Any) -> DenseMatrix:
    floats: DenseMatrix = _as_floats(name, array)
    bad = _first_not_finite(floats)
    if bad is not None:
        row, column = bad
        names = getattr(given, "columns", None)
        label = column if names is None else f"{column} ({names[column]})"
        raise InvalidProblem(
            f"{name} is {floats[bad]} in row {row}, column {label}; remove the row or fill the value in."
        )
    return floats


def _check_sparse_entries(name: str, X: CSRMatrix) -> CSRMatrix:
    bad = _first_not_finite(X.data)
    if bad is not None:
        place = bad[0]
        raise InvalidProblem(
            f"{name} is {X.data[place]} in row {row_of(X, place)}, column {X.indices[place]}; "
            f"remove the row or fill the value in."
        )
    return X


def _as_array(name: str, values: Any) -> NDArray[Any]:
    if sparse.issparse(values):
        raise InvalidProblem(f"{name} is a sparse matrix, but a dense array is required; give {name}.toarray().")
    refuse_masks(**{name: values})
    if hasattr(values, "to_numpy"):
        return _from_frame(name, values)
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InvalidProblem(f"{name} is not an array of numbers: its rows differ in length: {error}") from error


def _from_frame(name: str, frame: Any) -> NDArray[Any]:
    """Return a pandas or polars object as an array; nullable numbers become floats with NaN."""
    array: NDArray[Any] = np.asarray(frame.to_numpy())
    if array.dtype != object:
        return array
    for column, dtype in _dtypes(frame):
        if not _is_number(dtype):
            place = "" if column is None else f" column {column!r}"
            raise InvalidProblem(
                f"{name}{place} holds {dtype}, but numbers are required; encode or leave it out, or convert "
                f"it with astype(float)."
            )
    return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))


def _is_number(dtype: Any) -> bool:
    if hasattr(dtype, "kind"):
        return dtype.kind in "biuf"
    return bool(dtype.is_integer() or dtype.is_float())  # polars


def _dtypes(frame: Any) -> Iterator[tuple[Any, Any]]:
    if hasattr(frame, "columns"):
        yield from zip(frame.columns, frame.dtypes, strict=True)
    else:
        yield None, frame.dtype


def _as_floats(name: str, X: Any) -> Any:
    """Return float64 and float32 as they are, other real numbers as float64."""
    if X.dtype in (np.float64, np.float32):
        return X
    if X.dtype.kind not in "biuf":
        raise InvalidProblem(
            f"{name} has dtype {X.dtype}, but real numbers are required; convert it with astype(float) if it "
            f"holds numbers."
        )
    return X.astype(np.float64)


def _first_not_finite(array: NDArray[Any]) -> tuple[int, ...] | None:
    """Return the place of the first NaN or infinity; a finite sum, which is quick, rules them out."""
    with np.errstate(all="ignore"):
        if np.isfinite(array.sum()):
            return None
    rows = max(1, _CHUNK * len(array) // max(1, array.size))
    for start in range(0, len(array), rows):
        finite = np.isfinite(array[start : start + rows])
        if not finite.all():
            place = np.unravel_index(int(np.argmin(finite)), finite.shape)
            return (start + int(place[0]), *(int(i) for i in place[1:]))
    return None
