"""Groups that are named by a column of a data frame, which is then no feature."""

import difflib
from typing import Any

from stoic.errors import InvalidParameter, InvalidProblem

_MOST_SHOWN = 10  # columns that a message lists


def split_groups(X: Any, groups: Any, known: str | None = None) -> tuple[Any, Any, str | None]:
    """Return the features, the labels of the groups, and the name of the column that they came from.

    Parameters
    ----------
    X : array, CSR matrix or data frame
    groups : array, str or None
        Labels, or the name of a column of X that holds them.
    known : str, optional
        The column that named the groups of earlier rows; X may still have it.

    Raises
    ------
    InvalidParameter
        If X has no such column.
    InvalidProblem
        If X has no other.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"rooms": [2, 3], "town": ["Ulm", "Bonn"]})
    >>> features, labels, name = split_groups(frame, "town")
    >>> list(features), labels.tolist(), name
    (['rooms'], ['Ulm', 'Bonn'], 'town')
    """
    if isinstance(groups, str):
        labels = labels_of(X, groups)
        if _names_of(X) == [groups]:
            raise InvalidProblem(f"X has no column besides groups={groups!r}, but a feature is required.")
        return without_column(X, groups), labels, groups
    return without_column(X, known), labels_of(X, groups), known


def labels_of(X: Any, groups: Any) -> Any:
    """Return the labels of the groups of the rows of X; `groups` holds them, or names a column of X."""
    if isinstance(groups, str):
        _check_column(X, groups)
        groups = X[groups]
    # Of a column of categories a fold may have only some: its groups are those that its rows have.
    return groups.to_numpy() if hasattr(getattr(groups, "dtype", None), "categories") else groups


def without_column(X: Any, name: str | None) -> Any:
    """Return a data frame without a column that it may have; anything else as it is."""
    names = _names_of(X)
    if name is None or name not in names:
        return X
    others = [place for place, other in enumerate(names) if other != name]
    return X.iloc[:, others] if hasattr(X, "iloc") else X[:, others]


def _names_of(X: Any) -> list[Any]:
    """Return the names of the columns of a pandas or polars data frame; none of anything else."""
    return list(X.columns) if hasattr(X, "to_numpy") and hasattr(X, "columns") else []


def _check_column(X: Any, name: str) -> None:
    names = _names_of(X)
    if not names:
        raise InvalidParameter(
            f"groups={name!r} names a column, but X is of type {type(X).__name__}; give a data frame of pandas or "
            f"polars, or the group of each row."
        )
    if name not in names:
        by_lowered = {str(other).lower(): other for other in names}
        near = difflib.get_close_matches(name.lower(), by_lowered)
        hint = f"did you mean {by_lowered[near[0]]!r}? X has" if near else "it has"
        shown = ", ".join(map(repr, names[:_MOST_SHOWN])) + (", …" if len(names) > _MOST_SHOWN else "")
        raise InvalidParameter(f"groups={name!r} is not a column of X; {hint} {shown}.")
