"""Parquet and Feather files as tables of columns with types."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import feather, parquet

from stoic.errors import InvalidProblem

_MUCH = 1 << 31  # bytes
_MOST_UNPACKED = 1_000  # bytes of a table for one of its file


def read_parquet(path: Path) -> Any:
    """Return the table of a Parquet file; a damaged one is refused."""

    def read(file: Any) -> Any:
        packed = parquet.ParquetFile(file, page_checksum_verification=True)
        facts = packed.metadata
        _check_size(path, facts.num_rows * facts.num_columns * 8)
        table = packed.read()
        if table.num_rows != facts.num_rows:
            raise pa.ArrowInvalid(f"{table.num_rows} rows in place of {facts.num_rows}")
        return table

    return _whole(path, read, "Parquet")


def read_feather(path: Path) -> Any:
    """Return the table of a Feather file (Arrow's format for files); a damaged one is refused."""
    return _whole(path, feather.read_table, "Feather")


def _whole(path: Path, read: Callable[[Any], Any], kind: str) -> Any:
    with path.open("rb") as file:
        try:
            table = read(file)
            table.validate(full=True)  # without checksums damage may show in the values only, in text that is none
        except InvalidProblem:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InvalidProblem(
                f"{path}: the file is damaged, or not a {kind} file: {error}; get or write it again."
            ) from error
    return table


def _check_size(path: Path, n_bytes: int) -> None:
    """Refuse a file whose table would fill the memory by far more than the file says."""
    if n_bytes > max(_MUCH, _MOST_UNPACKED * path.stat().st_size):
        raise InvalidProblem(
            f"{path}: the table would take {n_bytes / 2**30:.1f} GiB, over {_MOST_UNPACKED:,} times the size of "
            "the file; write it again as CSV, or with fewer columns, if that is meant."
        )
