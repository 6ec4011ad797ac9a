"""How columns were made, from the file of a model: checked, since a stranger may have written it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stoic.errors import DamagedFile
from stoic.fitting.schemas import Schema

_MOST_SHOWN = 60


def schema_from(path: Path, columns: Mapping[str, Any] | None, n_features: int) -> Schema:
    """Return the schema that the file of a model of so many features has.

    Raises
    ------
    DamagedFile
        If there is none, or it is not one that `save_fitted` wrote.
    """
    if columns is None:
        raise DamagedFile(f"{path} was saved without the columns of a file; load it with stoic.load_model.")
    try:
        _check(columns)
        schema = Schema.from_json(columns)
        names = schema.names
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(path, f"has columns that cannot be read ({error!r:.200})") from error
    if names is not None and len(names) != n_features:
        raise _damaged(path, f"encodes {len(names):,} columns for a model of {n_features:,}")
    return schema


def _check(columns: Mapping[str, Any]) -> None:
    """Raise TypeError or ValueError unless roles are text, and codes of columns are made of plain values."""
    for role in ("target", "group", "weight"):
        _require_text(role, columns[role] or "")
    for code in columns["encoding"] or ():
        _require_text("the name of a column", code["name"])
        categories, fill = code["categories"], code["fill"]
        for one in () if categories is None else categories:
            _require_text(f"a category of {_short(code['name'])}", one)
        if categories is not None and not 0 < len(categories) == len(set(categories)):
            raise ValueError(f"the categories of {_short(code['name'])} are not there once each")
        kind = int | float if categories is None else str
        if not (fill is None or isinstance(fill, kind)):
            raise TypeError(f"{_short(code['name'])} is filled with {_short(fill)}")


def _require_text(what: str, value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{what} is {_short(value)}, not text")


def _short(value: Any) -> str:
    return repr(value)[:_MOST_SHOWN]


def _damaged(path: Path, what: str) -> DamagedFile:
    return DamagedFile(f"{path} has the right checksum but {what}; fit the model again.")
