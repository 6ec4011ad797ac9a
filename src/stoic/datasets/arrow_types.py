"""Types of Arrow columns: which are numbers, moments or text, and their values as float64."""

from typing import Any

import numpy as np
import pyarrow as pa

from stoic.protocols import Vector

_PER_DAY, _PER_HOUR = 86_400e6, 3_600e6  # microseconds


def is_number(kind: Any) -> bool:
    """Whether values are numbers or booleans."""
    types = pa.types
    return bool(
        types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    )


def is_moment(kind: Any) -> bool:
    """Whether values are dates or times of day."""
    return is_date(kind) or bool(pa.types.is_time(kind))


def is_date(kind: Any) -> bool:
    """Whether values are dates, with a time of day or without."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def is_text(kind: Any) -> bool:
    """Whether values are text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def usual(values: Any) -> Any:
    """Return values without types that few functions take: string views, and null, of which all are missing."""
    if pa.types.is_null(values.type):
        return values.cast(pa.float64())
    return values.cast(pa.large_string()) if pa.types.is_string_view(values.type) else values


def as_floats(values: Any, *, safe: bool = True) -> Vector:
    """Return numbers, dates (as days since 1970-01-01) or times (as hours) as float64, NaN where one is missing.

    Raises
    ------
    pyarrow.ArrowInvalid
        If a number is too large to be held exactly, unless `safe` is false.

    Examples
    --------
    >>> import datetime as dt
    >>> as_floats(pa.chunked_array([[dt.date(1970, 1, 3), None]])).tolist()
    [2.0, nan]
    """
    kind, unit = values.type, 1.0
    if is_date(kind):
        zone = getattr(kind, "tz", None)
        values, unit = values.cast(pa.timestamp("us", zone)).cast(pa.int64()), _PER_DAY
    elif is_moment(kind):
        values, unit = values.cast(pa.time64("us")).cast(pa.int64()), _PER_HOUR
    return np.asarray(values.cast(pa.float64(), safe=safe).to_numpy(), dtype=np.float64) / unit
