"""Tables from LIBSVM, CSV, Parquet and Feather files, told apart by the end of the name."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from stoic.datasets.compressed import as_path
from stoic.datasets.libsvm import read_libsvm
from stoic.errors import InvalidParameter, InvalidProblem
from stoic.inners.designs import Matrix
from stoic.protocols import Vector

if TYPE_CHECKING:
    from stoic.datasets.columns import Column
    from stoic.datasets.guessing import Conventions


_LIBSVM = (".svm", ".svmlight", ".libsvm", ".txt")
_DELIMITED = {".csv": ",", ".tsv": "\t"}
_TYPED = (".parquet", ".feather", ".arrow")
_PACKED = (".gz", ".bz2")
_PANDAS = {  # what is not read, and what pandas reads it with
    ".xlsx": "read_excel",
    ".xlsm": "read_excel",
    ".xls": "read_excel",
    ".ods": "read_excel",
    ".json": "read_json",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
    ".dta": "read_stata",
    ".sav": "read_spss",
    ".sas7bdat": "read_sas",
    ".pkl": "read_pickle",
}
_MOST_SHOWN = 20  # columns that a message lists


class Table(NamedTuple):
    """Rows, labels, and for a file with named columns the group of each row and the names of the columns of X."""

    X: Matrix
    y: Vector
    groups: NDArray[Any] | None
    names: tuple[str, ...] | None


def read_table(path: str | os.PathLike[str], *, target: str | None = None, group: str | None = None) -> Table:
    r"""Read a data set from a LIBSVM, CSV, Parquet or Feather file.

    Of a file with named columns all but `target` and `group` are features. Numbers and booleans are used as they
    are, dates become days since 1970, times of day hours; other text and dictionary columns become one column of
    zeros and ones for each category, named ``column=category``. Text that reads as numbers is read so: money,
    percentages, thousands set apart, decimal commas, and 1 and 0 for yes and no. Missing values and other types
    are refused, and so is a word in a column of text that else holds numbers, many different ones. In a CSV file
    ``NA``, ``null`` and the like are missing values unless they are quoted. Rows are counted from 1, the header is
    not.

    Parameters
    ----------
    path : path
        ``.svm``, ``.svmlight``, ``.libsvm`` or ``.txt`` for LIBSVM, ``.csv`` or ``.tsv``, each also with ``.gz``
        or ``.bz2``; ``.parquet``, ``.feather`` or ``.arrow``. A LIBSVM file of another name is read by
        `stoic.datasets.libsvm.read_libsvm`. Columns may be separated by commas, semicolons, tabs or bars, and the
        text encoded as UTF-8, UTF-16 or Windows-1252: the content tells.
    target : str, optional
        The column of labels, which are numbers; required but for LIBSVM, where the label comes first.
    group : str, optional
        The column of groups, of any type.

    Returns
    -------
    Table
        ``(X, y, groups, names)``. X is CSR for LIBSVM, and where a dense one would take more than 1 GiB and four
        times the memory; else dense. `groups` holds numbers, booleans, or text; it is None without `group`.
        `names` are those of the columns of X; None for LIBSVM.

    Raises
    ------
    InvalidParameter
        If the kind of file is not known, or `target` or `group` is not a column of it.
    InvalidProblem
        If the file cannot be used; the message names it, and the column and row at fault.
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
    if is_libsvm(place):
        if target is not None or group is not None:
            raise InvalidParameter(
                f"{place} is a LIBSVM file without named columns; leave out target={target!r} and group={group!r}."
            )
        X, y = read_libsvm(place)
        return Table(X, y, None, None)
    return _as_table(place, read_columns(place).columns, target, group)


class ColumnsFile(NamedTuple):
    """The columns of a file, and a sentence on how it was read where that is not the usual way."""

    columns: "list[Column]"
    notes: tuple[str, ...] = ()


def is_libsvm(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one of LIBSVM's, by its name."""
    return _kind(as_path(path)) in _LIBSVM


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one of rows, by its name; InvalidParameter for tables that are not read, as Excel's."""
    return _known_kind(as_path(path)) is not None


def read_columns(path: str | os.PathLike[str], told: "Conventions | None" = None) -> ColumnsFile:
    """Return the columns of a file that names them, their text read as numbers and dates where all of it can be.

    Parameters
    ----------
    path : path
    told : Conventions, optional
        What is known of decimal marks and dates.
    """
    from stoic.datasets.guessing import Conventions  # noqa: PLC0415 - imports pyarrow

    place = as_path(path)
    kind = _kind(place)
    read = _read_typed if kind in _TYPED else _read_delimited
    return read(place, kind, told or Conventions())


def _read_typed(path: Path, kind: str, told: "Conventions") -> ColumnsFile:
    from stoic.datasets.arrow_files import read_feather, read_parquet  # noqa: PLC0415 - imports pyarrow
    from stoic.datasets.guessing import read_texts  # noqa: PLC0415

    table = (read_parquet if kind == ".parquet" else read_feather)(path)
    return ColumnsFile(read_texts(_as_columns(path, table), told, typed=True))


def _read_delimited(path: Path, kind: str, told: "Conventions") -> ColumnsFile:
    from stoic.datasets.delimited import read_delimited  # noqa: PLC0415 - imports pyarrow
    from stoic.datasets.guessing import has_decimal_commas, read_texts  # noqa: PLC0415

    found = read_delimited(path, likely=_DELIMITED[kind])
    columns = read_texts(_as_columns(path, found.table), told)
    odd = [f"as {found.encoding} text"] if found.encoding != "UTF-8" else []
    odd += [f"with {found.separated_by}"] if found.separator != _DELIMITED[kind] else []
    odd += ["with decimal commas"] if has_decimal_commas(columns) else []
    return ColumnsFile(columns, (f"{path.name} is read {', '.join(odd)}.",) if odd else ())


def _kind(path: Path) -> str:
    kind = _known_kind(path)
    if kind is None:
        raise InvalidParameter(
            f"{path} does not end in {', '.join(_LIBSVM)} or .csv or .tsv, alone or with .gz or .bz2, nor in "
            f"{', '.join(_TYPED)}; rename it, or call read_libsvm if it is a LIBSVM file."
        )
    return kind


def _known_kind(path: Path) -> str | None:
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    packed = bool(suffixes) and suffixes[-1] in _PACKED
    kind = "".join(suffixes[-2:-1] if packed else suffixes[-1:])
    if kind in _PANDAS:
        lines = ", lines=True" if kind in {".jsonl", ".ndjson"} else ""
        raise InvalidParameter(
            f"{path} is of a kind that is not read; export it as CSV, or in Python: import pandas; "
            f"pandas.{_PANDAS[kind]}({path.name!r}{lines}).to_csv({f'{path.stem}.csv'!r}, index=False)"
        )
    return kind if kind in (*_LIBSVM, *_DELIMITED) or (kind in _TYPED and not packed) else None


def _as_columns(path: Path, table: Any) -> "list[Column]":
    from stoic.datasets.columns import Column  # noqa: PLC0415 - imports pyarrow

    names: list[str] = table.column_names
    twice = [name for name, n_times in Counter(names).items() if n_times > 1]
    if twice:
        raise InvalidProblem(f"{path}: the column names {_listed(twice)} are there more than once; rename them.")
    if not table.num_rows:
        raise InvalidProblem(f"{path}: the file has no rows, but at least one is required.")
    return [Column(path, name, values) for name, values in zip(names, table.itercolumns(), strict=True)]


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
    known = set(names)
    for argument, name in wanted.items():
        if name not in known:
            raise InvalidParameter(f"{argument}={name!r} is not a column of {path}; {_remedy(name, names)}")


def _remedy(name: str, names: Sequence[str]) -> str:
    by_small = {one.lower(): one for one in reversed(names)}
    near = [by_small[one] for one in get_close_matches(name.strip().lower(), by_small, n=3)]
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    said = f"choose one of {_listed(names)}."
    if len(names) == 1:
        said += " Columns are separated by commas, semicolons, tabs or bars."
    elif 2 * sum(one.replace(".", "", 1).lstrip("-").isdigit() for one in names) > len(names):
        said += " The first line of a file names its columns."
    return said


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    return ", ".join(map(repr, names[:_MOST_SHOWN])) + more
