"""Tables from LIBSVM, CSV and Parquet files, told apart by the end of the name."""

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from stoic.datasets.compressed import as_path, open_bytes
from stoic.datasets.libsvm import read_libsvm
from stoic.errors import InvalidParameter, InvalidProblem, MissingDependency
from stoic.inners.designs import Matrix
from stoic.protocols import Vector

if TYPE_CHECKING:
    from stoic.datasets.columns import Column


_LIBSVM = (".svm", ".svmlight", ".libsvm", ".txt")
_PACKED = (".gz", ".bz2")
_LARGEST_BLOCK = 2**31 - 1
_MOST_SHOWN = 20  # columns that a message lists


class Table(NamedTuple):
    """Rows, labels, and for a file with named columns the group of each row and the names of the columns of X."""

    X: Matrix
    y: Vector
    groups: NDArray[Any] | None
    names: tuple[str, ...] | None


def read_table(path: str | os.PathLike[str], *, target: str | None = None, group: str | None = None) -> Table:
    r"""Read a data set from a LIBSVM, CSV or Parquet file.

    Of a CSV or Parquet file, all columns but `target` and `group` are features. Numbers and booleans are used as
    they are; text and dictionary columns become one column of zeros and ones for each category, named
    ``column=category``. Missing values, dates and other types are refused, and so is a word in a CSV column that
    else holds numbers, many different ones. In a CSV file ``NA``, ``null`` and the like are missing values unless
    they are quoted. Rows are counted from 1, the header is not.

    Parameters
    ----------
    path : path
        ``.svm``, ``.svmlight``, ``.libsvm`` or ``.txt`` for LIBSVM, ``.csv``, each also with ``.gz`` or
        ``.bz2``; or ``.parquet``. A LIBSVM file of another name is read by `stoic.datasets.libsvm.read_libsvm`.
    target : str, optional
        The column of labels, which are numbers; required but for LIBSVM, where the label comes first.
    group : str, optional
        The column of groups, of any type.

    Returns
    -------
    Table
        ``(X, y, groups, names)``. X is CSR for LIBSVM, and where categories take more than 50 columns; else
        dense. `groups` holds numbers, booleans, or text; it is None without `group`. `names` are those of the
        columns of X; None for LIBSVM.

    Raises
    ------
    InvalidParameter
        If the kind of file is not known, or `target` or `group` is not a column of it.
    InvalidProblem
        If the file cannot be used; the message names it, and the column and row at fault.
    MissingDependency
        If pyarrow, or scikit-learn for LIBSVM, is not installed.
    OSError
        If there is no such file, or it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "flats.csv"
    ...     _ = path.write_text("rent,rooms,town\n900,2,Ulm\n1200,3,Bonn\n")
    ...     table = read_table(path, target="rent")
    >>> table.names, table.X.tolist(), table.y.tolist()
    (('rooms', 'town=Bonn', 'town=Ulm'), [[2.0, 0.0, 1.0], [3.0, 1.0, 0.0]], [900.0, 1200.0])
    """
    place = as_path(path)
    kind = _kind(place)
    if kind in _LIBSVM:
        if target is not None or group is not None:
            raise InvalidParameter(
                f"{place} is a LIBSVM file without named columns; leave out target={target!r} and group={group!r}."
            )
        X, y = read_libsvm(place)
        return Table(X, y, None, None)
    return _as_table(place, read_columns(place), target, group)


def is_libsvm(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one of LIBSVM's, by its name."""
    return _kind(as_path(path)) in _LIBSVM


def read_columns(path: str | os.PathLike[str]) -> "list[Column]":
    """Return the columns of a CSV or Parquet file, as they are; see `read_table` for what is refused."""
    place = as_path(path)
    _check_pyarrow()
    return _read_csv(place) if _kind(place) == ".csv" else _read_parquet(place)


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    packed = bool(suffixes) and suffixes[-1] in _PACKED
    kind = "".join(suffixes[-2:-1] if packed else suffixes[-1:])
    if kind in (*_LIBSVM, ".csv") or (kind == ".parquet" and not packed):
        return kind
    raise InvalidParameter(
        f"{path} does not end in {', '.join(_LIBSVM)} or .csv, alone or with .gz or .bz2, nor in .parquet; rename "
        f"it, or call read_libsvm if it is a LIBSVM file."
    )


def _check_pyarrow() -> None:
    try:
        import pyarrow as pa  # noqa: F401, PLC0415 - optional, and slow to import
    except ImportError as error:
        raise MissingDependency(
            "reading CSV and Parquet files needs pyarrow, which is not installed; run: pip install pyarrow"
        ) from error


def _read_csv(path: Path) -> "list[Column]":
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import csv  # noqa: PLC0415

    with open_bytes(path) as file:
        content = file.read()
    # In one block: a type is guessed from the first, and a value further down that does not fit would be refused.
    block_size = min(max(len(content), 1), _LARGEST_BLOCK)
    try:
        table = csv.read_csv(
            pa.BufferReader(content),
            read_options=csv.ReadOptions(block_size=block_size, use_threads=False),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False),
        )
        columns = _as_columns(path, table)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise InvalidProblem(_explain(path, str(error))) from error
    for column in columns:
        column.check_typed()
    return columns


def _explain(path: Path, message: str) -> str:
    """Return pyarrow's message on a CSV file with the row counted as ours are, without the header."""
    match = re.search(r"Row #(\d+): (.*)", message, re.DOTALL)
    if match is None:
        return f"{path}: the file cannot be read as CSV in UTF-8: {message}"
    return f"{path}, row {int(match[1]) - 1}: {match[2]}"


def _read_parquet(path: Path) -> "list[Column]":
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    with path.open("rb") as file:
        try:
            packed = parquet.ParquetFile(file, page_checksum_verification=True)
            table = packed.read()
            table.validate(full=True)  # without checksums damage may show in the values only, in text that is none
            if table.num_rows != packed.metadata.num_rows:
                raise pa.ArrowInvalid(f"{table.num_rows} rows in place of {packed.metadata.num_rows}")
            return _as_columns(path, table)
        except InvalidProblem:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InvalidProblem(
                f"{path}: the file is damaged, or not a Parquet file: {error}; get or write it again."
            ) from error


def _as_columns(path: Path, table: Any) -> "list[Column]":
    from stoic.datasets.columns import Column  # noqa: PLC0415 - imports pyarrow

    names: list[str] = table.column_names
    twice = [name for name, n_times in Counter(names).items() if n_times > 1]
    if twice:
        raise InvalidProblem(f"{path}: the column names {_listed(twice)} are there more than once; rename them.")
    if not table.num_rows:
        raise InvalidProblem(f"{path}: the file has no rows, but at least one is required.")
    return [Column(path, name, table[name]) for name in names]


def _as_table(path: Path, columns: "Sequence[Column]", target: str | None, group: str | None) -> Table:
    from stoic.datasets.encoding import Encoding  # noqa: PLC0415 - imports pyarrow

    by_name = {column.name: column for column in columns}
    check_names(path, {"target": str(target), **({} if group is None else {"group": group})}, list(by_name))
    features = [column for column in columns if column.name not in {target, group}]
    if not features:
        raise InvalidProblem(f"{path}: there is no column besides target and group, but a feature is required.")
    y = by_name[str(target)].as_numbers()
    groups = None if group is None else by_name[group].as_labels()
    encoding = Encoding.of(features)
    return Table(encoding.apply(features), y, groups, encoding.names)


def check_names(path: Path, wanted: Mapping[str, str], names: Sequence[str]) -> None:
    """Raise `InvalidParameter` unless the columns that arguments ask for are among those of a file."""
    for argument, name in wanted.items():
        if name not in names:
            raise InvalidParameter(
                f"{argument}={name!r} is not a column of {path}; choose one of {_listed(names)}."
            )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    return ", ".join(map(repr, names[:_MOST_SHOWN])) + more
