"""Readers of plain, gzip and bzip2 files that never take a damaged or cut-off file for a whole one."""

import bz2
import contextlib
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from stoic.errors import InvalidParameter, InvalidProblem

_BLOCK = 1 << 16
_MUCH = 1 << 28  # bytes that any file may unpack to
_MOST_UNPACKED = 200  # beyond these, unpacked bytes for one packed: text has 3 to 20


class CutOff(InvalidProblem):
    """A compressed file ends before its data do."""


def as_path(path: str | os.PathLike[str]) -> Path:
    """Return a path, or raise `InvalidParameter` for what cannot be one.

    Examples
    --------
    >>> as_path("E2006.train").name
    'E2006.train'
    """
    try:
        found = Path(path)
    except TypeError:
        raise InvalidParameter(f"path={path!r} is not the name of a file.") from None
    if "\0" in str(found):
        raise InvalidParameter(f"path={path!r} holds a null character, which no file name has.")
    return found


@contextlib.contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading; ``.gz`` and ``.bz2`` are unpacked on the way.

    Reading raises `CutOff` where compressed data end early and `InvalidProblem` where they are damaged, or where
    they unpack to more than 256 MiB and 200 times the size of the file, as no table does.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rows.bz2"
    ...     _ = path.write_bytes(bz2.compress(b"some rows")[:-1])
    ...     with open_bytes(path) as file:
    ...         file.read()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    stoic.datasets.compressed.CutOff: ...rows.bz2: the file is cut off: its compressed data ... get the file again.
    """
    with path.open("rb") as packed, contextlib.ExitStack() as stack:
        source: Any = None
        if path.suffix.lower() == ".gz":
            source = stack.enter_context(gzip.GzipFile(fileobj=packed))
        elif path.suffix.lower() == ".bz2":
            source = _Bunzip2(packed)
        yield packed if source is None else io.BufferedReader(_Unpacked(path, source), _BLOCK)


class _Unpacked(io.RawIOBase):
    """Unpacked bytes; whatever a decoder raises becomes an error that names the file."""

    def __init__(self, path: Path, source: Any) -> None:
        super().__init__()
        self._path, self._source = path, source
        self._n_left = max(_MUCH, _MOST_UNPACKED * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._source.read(len(buffer))
        except EOFError:
            raise CutOff(
                f"{self._path}: the file is cut off: its compressed data end too early; get the file again."
            ) from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise InvalidProblem(
                f"{self._path}: the compressed data are damaged ({error}); get the file again."
            ) from error
        self._n_left -= len(data)
        if self._n_left < 0:
            raise InvalidProblem(
                f"{self._path} unpacks to more than {_MOST_UNPACKED} times its size, which no table does; unpack "
                "it yourself and give the plain file, if you trust it."
            )
        buffer[: len(data)] = data
        return len(data)


class _Bunzip2:
    """A reader of bzip2 streams, one after another; unlike `bz2.BZ2File` it does not pass over a damaged one."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._decoder = bz2.BZ2Decompressor()
        self._next = b""

    def read(self, size: int) -> bytes:
        """Return some bytes, at most `size`; none at the end."""
        data = b""
        while not data:
            if self._decoder.eof and not self._begin_stream():
                return b""
            block = b""
            if self._decoder.needs_input:
                block, self._next = self._next or self._packed.read(_BLOCK), b""
                if not block:
                    raise EOFError
            try:
                data = self._decoder.decompress(block, size)
            except OSError as error:  # of the decoder; one of the disk comes from the line above
                raise zlib.error(str(error)) from error
        return data

    def _begin_stream(self) -> bool:
        self._next = self._decoder.unused_data or self._packed.read(_BLOCK)
        if self._next:  # else the decoder stays at its end, and the next call finds it there
            self._decoder = bz2.BZ2Decompressor()
        return bool(self._next)
