"""LIBSVM files, parsed by scikit-learn; faults that it would let pass are refused, with their line."""

import math
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from stoic.checks import check_count
from stoic.datasets import parsed_cache
from stoic.datasets.compressed import CutOff, as_path, open_bytes
from stoic.datasets.parsed_cache import CSR
from stoic.errors import InvalidParameter, InvalidProblem
from stoic.protocols import Vector

_LARGEST_INDEX = 2**31 - 1
_LONGEST_LINE = 1 << 28  # bytes: a file of junk without a line end does not fill the memory
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(rb"[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_INDEX = re.compile(rb"[+-]?[0-9]+")
_SIGNS = b"0123456789+-.:eE \t"  # of which lines are made; with them Python's int and float read just numbers
_A_LINE = "a line is 'label index:value index:value ...'"
_SHOWN = 40  # signs of a file that a message repeats
_LETTERS = b"aAfFiInNtTyY"  # of nan, inf and infinity


def read_libsvm(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    allow_nonfinite: bool = False,
    allow_incomplete: bool = False,
    cache: bool = True,
) -> tuple[CSR, Vector]:
    r"""Read a data set in LIBSVM's format, plain or compressed: lines ``label index:value index:value ...``.

    Indices increase within a line, from 1 on; what is not listed is 0. A ``#`` starts a comment, blank lines are
    passed over, and a line may be a label alone. Numbers are decimal, such as ``-1.5e3``; one too close to 0 for
    float64 becomes 0.

    Parameters
    ----------
    path : path
        A file; ``.gz`` and ``.bz2`` are unpacked on the way.
    n_features : int, optional
        Columns of the matrix; a larger index is refused. Without it the largest index decides, so that the files
        of one data set may differ.
    zero_based : bool, default False
        Whether the file counts columns from 0.
    allow_nonfinite : bool, default False
        Accept ``nan`` and ``inf``, and numbers too large for float64 as infinite.
    allow_incomplete : bool, default False
        Of a file that is cut off, read the lines that are whole. A last line that does not end in a newline is
        then left out. Otherwise such a line is read if it is complete; that a number lost digits cannot be seen.
    cache : bool, default True
        Keep the result in `$STOIC_CACHE_DIR` or the user's cache folder, under a checksum of the file's content
        and the options; the eight files used last stay there.

    Returns
    -------
    X : csr_array of float64 of shape (n, n_features)
        Indices are int32 where they fit. Zeros that are listed are stored.
    y : array of shape (n,)

    Raises
    ------
    InvalidProblem
        If the file is not such a data set. The message names the file and the first line at fault, if it is a
        line's.
    OSError
        If there is no such file, or it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rows.svm"
    ...     _ = path.write_text("1.5 1:2 3:-1  # a comment\n-2 2:1e3\n")
    ...     X, y = read_libsvm(path, cache=False)
    >>> X.toarray().tolist(), y.tolist()
    ([[2.0, 0.0, -1.0], [0.0, 1000.0, 0.0]], [1.5, -2.0])
    """
    place = as_path(path)
    if n_features is not None and check_count("n_features", n_features) > _LARGEST_INDEX + 1:
        raise InvalidParameter(f"n_features={n_features} is above 2**31; use fewer columns.")
    rules = _Rules(n_features, bool(zero_based), bool(allow_nonfinite), bool(allow_incomplete))
    if not cache:
        return _parse(place, rules)
    key = parsed_cache.key_of(place, asdict(rules))
    found = parsed_cache.load(key)
    if found is None:
        found = _parse(place, rules)
        if parsed_cache.key_of(place, asdict(rules)) == key:  # not written to meanwhile
            parsed_cache.keep(key, *found)
    return found


@dataclass(frozen=True, slots=True)
class _Rules:
    n_features: int | None
    zero_based: bool
    allow_nonfinite: bool
    allow_incomplete: bool

    @property
    def signs(self) -> bytes:
        return _SIGNS + _LETTERS if self.allow_nonfinite else _SIGNS


class _FaultError(ValueError):
    """A fault of a line, or of the whole file."""


class _Lines:
    """The lines of a file without comments and line ends, and the number of the one given last."""

    def __init__(self, file: BinaryIO, rules: _Rules) -> None:
        self._file, self._rules = file, rules
        self.number = 0

    def __iter__(self) -> Iterator[bytes]:
        for self.number in count(1):
            line = self._next()
            if not line:
                return
            if len(line) > _LONGEST_LINE:
                raise _FaultError(f"the line is longer than {_LONGEST_LINE:,} bytes; {_A_LINE}")
            yield _without_comment(line)

    def _next(self) -> bytes:
        try:
            line = self._file.readline(_LONGEST_LINE + 1)
        except CutOff:
            if self._rules.allow_incomplete:
                return b""
            raise
        whole = line.endswith(b"\n") or len(line) > _LONGEST_LINE
        return line if whole or not self._rules.allow_incomplete else b""


def _without_comment(line: bytes) -> bytes:
    data, _, comment = line.removesuffix(b"\n").removesuffix(b"\r").partition(b"#")
    try:
        comment.decode()
    except UnicodeDecodeError as error:
        raise _FaultError(f"the comment is not UTF-8 text ({error.reason}); convert or remove it") from error
    return data


@dataclass(frozen=True, slots=True)
class _Feed:
    """Lines for scikit-learn, which takes what has `read` and asks only for lines.

    It would let pass ``1_0``, a ``qid``, and any white space: so a line of other signs than usual stops it.
    """

    lines: _Lines
    signs: bytes

    def __iter__(self) -> Iterator[bytes]:
        for data in self.lines:
            if data.translate(None, self.signs):
                raise _FaultError("an unusual sign")
            yield data

    def read(self) -> bytes:
        return b"\n".join(self)


def _parse(path: Path, rules: _Rules) -> tuple[CSR, Vector]:
    """Return the data that scikit-learn reads, if nothing is wrong with them; else find the line at fault."""
    load = _loader()
    with open_bytes(path) as file:
        lines = _Lines(file, rules)
        try:
            found, y = load(_Feed(lines, rules.signs), dtype=np.float64, zero_based=rules.zero_based)
            X = _as_csr(found, rules)
            _check_result(X, y, rules)
        except InvalidProblem:
            raise
        except (ValueError, OverflowError) as error:
            _find_fault(path, rules)
            raise InvalidProblem(f"{path}, line {lines.number}: scikit-learn refuses it: {error}.") from error
    return X, y


def _loader() -> Callable[..., Any]:
    from sklearn.datasets import load_svmlight_file  # noqa: PLC0415 - slow to import

    loader: Callable[..., Any] = load_svmlight_file
    return loader


def _as_csr(found: Any, rules: _Rules) -> CSR:
    """Return scikit-learn's matrix with `n_features` columns, if given, and with int32 indices where they fit."""
    n_columns = int(found.indices.max()) + 1 if found.nnz else 0
    if rules.n_features is not None:
        if n_columns > rules.n_features:
            raise _FaultError("an index is too large")
        n_columns = rules.n_features
    kind = np.int32 if max(n_columns, found.nnz) <= _LARGEST_INDEX else np.int64
    parts = found.data, found.indices.astype(kind), found.indptr.astype(kind)
    return sparse.csr_array(parts, shape=(found.shape[0], n_columns))


def _check_result(X: CSR, y: Vector, rules: _Rules) -> None:
    """Raise `_FaultError` for what only the numbers show; `_find_fault` says where and what."""
    if 0 in X.shape:
        raise _FaultError("no rows, or no columns")
    if not rules.allow_nonfinite and not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        raise _FaultError("not finite")


def _find_fault(path: Path, rules: _Rules) -> None:
    """Read the file slowly, line by line, and raise `InvalidProblem` for the first fault."""
    n_rows = n_pairs = 0
    data = b""
    with open_bytes(path) as file:
        lines = _Lines(file, rules)
        try:
            for data in lines:
                label, *pairs = re.split(rb"[ \t]+", data.strip(b" \t"))
                if label:
                    _check_row(label, pairs, rules)
                    n_rows, n_pairs = n_rows + 1, n_pairs + len(pairs)
        except _FaultError as fault:
            named = (
                "; a table whose first line names its columns must end in .csv" if _is_header(lines, data) else ""
            )
            raise InvalidProblem(f"{path}, line {lines.number}: {fault}{named}.") from None
    if not n_rows:
        raise InvalidProblem(f"{path}: the file has no rows; {_A_LINE}.")
    if not n_pairs and rules.n_features is None:
        raise InvalidProblem(f"{path}: no row lists a feature; {_A_LINE}, or give n_features if all are 0.")


def _is_header(lines: _Lines, data: bytes) -> bool:
    return lines.number == 1 and data[:1].isalpha() and b":" not in data


def _check_row(label: bytes, pairs: list[bytes], rules: _Rules) -> None:
    _check_number(label, "the label", label, rules)
    before = -1
    for pair in pairs:
        left, colon, right = pair.partition(b":")
        if left.startswith(b"qid"):
            raise _FaultError(f"{_shown(pair)} is for ranking, which is not read; remove the query numbers")
        if not colon:
            raise _FaultError(f"{_shown(pair)} is not a pair index:value; {_A_LINE}")
        index = _checked_index(left, pair, rules)
        if index <= before:
            raise _FaultError(f"index {index} follows index {before}; sort the indices, and list each once")
        _check_number(right, "the value in", pair, rules)
        before = index


def _checked_index(text: bytes, pair: bytes, rules: _Rules) -> int:
    if not _INDEX.fullmatch(text):
        raise _FaultError(f"the index in {_shown(pair)} is not a whole number; {_A_LINE}")
    digits = text.lstrip(b"+-0") or b"0"
    index = int(digits) if len(digits) <= 10 else _LARGEST_INDEX + 1
    if index and text.startswith(b"-"):
        raise _FaultError(f"the index in {_shown(pair)} is negative; indices count from {1 - rules.zero_based}")
    if index == 0 and not rules.zero_based:
        raise _FaultError("index 0 in a file that counts from 1; give zero_based=True if it counts from 0")
    if index > _LARGEST_INDEX:
        raise _FaultError(f"the index in {_shown(pair)} is above 2**31 - 1, the largest that is read")
    last = rules.n_features
    if last is not None and index >= last + (not rules.zero_based):
        raise _FaultError(f"index {index} is beyond n_features={last}; give a larger n_features or none")
    return index


def _check_number(text: bytes, what: str, shown: bytes, rules: _Rules) -> None:
    named = _NOT_FINITE.fullmatch(text)
    if not named and not _NUMBER.fullmatch(text):
        raise _FaultError(f"{what} {_shown(shown)} is not a number; {_A_LINE}")
    if not rules.allow_nonfinite and (named or math.isinf(float(text))):
        raise _FaultError(f"{what} {_shown(shown)} is not finite; remove the row, or give allow_nonfinite=True")


def _shown(text: bytes) -> str:
    return ascii((text if len(text) <= _SHOWN else text[:_SHOWN] + b"...").decode("latin-1"))
