"""Group labels of any kind, turned into group numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stoic.errors import InvalidProblem
from stoic.inners.blocks import IntArray
from stoic.inners.validation import check_length


def encode_groups(groups: Any, n_rows: int) -> tuple[NDArray[Any], IntArray]:
    """Return the sorted labels and, for each row, the number of its label.

    Parameters
    ----------
    groups : array of shape (n_rows,) or None
        Labels that can be sorted; None puts all rows in the one group 0.
    n_rows : int

    Returns
    -------
    labels : array of shape (p,)
    codes : array of int of shape (n_rows,)

    Raises
    ------
    InvalidProblem
        If the labels do not fit the rows, one is missing, or a category has no row.
    """
    if groups is None:
        return np.zeros(1, dtype=np.intp), np.zeros(n_rows, dtype=np.intp)
    array = _as_labels(groups)
    if array.ndim != 1:
        raise InvalidProblem(
            f"groups has shape {array.shape}, but one label for each row of X is required; join several "
            f"columns into one label."
        )
    check_length("groups", len(array), n_rows)
    if array.dtype == object:
        labels, codes = _encode_objects(array)
    else:
        _check_none_missing(array)
        labels, codes = np.unique(array, return_inverse=True)
    _check_no_category_is_empty(groups, labels)
    return labels, codes.astype(np.intp, copy=False)


def join_labels(known: NDArray[Any], more: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """Return all labels sorted, each once, and the numbers among them of the known labels and then of the others.

    Examples
    --------
    >>> labels, numbers = join_labels(np.array(["b", "d"]), np.array(["a", "d"]))
    >>> labels.tolist(), numbers.tolist()
    (['a', 'b', 'd'], [1, 2, 0, 2])
    """
    are_alike = known.dtype.kind == more.dtype.kind or {known.dtype.kind, more.dtype.kind} <= set("iuf")
    parts = [known, more] if are_alike else [known.astype(object), more.astype(object)]
    return encode_groups(np.concatenate(parts), len(known) + len(more))


def _as_labels(groups: Any) -> NDArray[Any]:
    """Return an array that keeps every label as it is: NumPy would make the text 'nan' of a missing one."""
    if np.ma.is_masked(groups):
        raise InvalidProblem("groups has masked entries, but every row needs a group; remove their rows.")
    if isinstance(groups, np.ndarray):
        return groups
    array: NDArray[Any] = np.asarray(groups.to_numpy() if hasattr(groups, "to_numpy") else groups)
    return np.array(list(groups), dtype=object) if array.dtype.kind in "US" and array.ndim == 1 else array


def _check_none_missing(array: NDArray[Any]) -> None:
    missing = array != array  # noqa: PLR0124 - true of NaN and NaT only
    if missing.any():
        _raise_missing(int(np.argmax(missing)), array)


def _encode_objects(array: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """Encode by hashing, which is faster than sorting objects, and sort the labels alone."""
    listed = array.tolist()
    try:
        distinct = list(dict.fromkeys(listed))
    except TypeError as error:
        raise InvalidProblem(
            f"groups holds a label that cannot be hashed ({error}); use text or numbers."
        ) from error
    for label in distinct:
        if _is_missing(label):
            _raise_missing(next(i for i, other in enumerate(listed) if other is label), array)
    numbers = {label: number for number, label in enumerate(_sorted(distinct))}
    labels = list(numbers)
    if not all(isinstance(label, str) for label in labels):
        return np.fromiter(labels, dtype=object), np.array([numbers[label] for label in listed])
    return np.array(labels), np.array([numbers[label] for label in listed])


def _sorted(labels: list[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:  # kinds that do not compare: kind by kind
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)  # noqa: PLR0124
    except TypeError:  # pandas' NA compares to nothing
        return True


def _raise_missing(row: int, array: NDArray[Any]) -> None:
    raise InvalidProblem(
        f"groups[{row}] is {array[row]}, but every row needs a group; remove the row or name a group for it."
    )


def _check_no_category_is_empty(groups: Any, labels: NDArray[Any]) -> None:
    """Refuse categories of a pandas or polars column that no row has: a group without a mean."""
    categories: Any = getattr(getattr(groups, "dtype", None), "categories", None)
    if not hasattr(categories, "__len__") or len(categories) == len(labels):
        return
    present = set(labels.tolist())
    empty = [str(category) for category in categories if category not in present]
    raise InvalidProblem(
        f"groups has no row in the categories {', '.join(empty)}, and an empty group has no mean; "
        f"drop them, in pandas with remove_unused_categories(), or add rows."
    )
