"""Archives of arrays and settings: ``.npz`` files with a checksum, written atomically, without pickle."""

import errno
import hashlib
import json
import math
import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from stoic.errors import DamagedFile, InvalidParameter
from stoic.storage.atomic import replacing

Arrays: TypeAlias = dict[str, NDArray[Any]]

_META = "meta.json"
_MARK = b"stoic sha256="  # the comment of the zip file: this and the checksum of the file without a comment
_SEAL_SIZE = len(_MARK) + 2 * hashlib.sha256().digest_size
_NO_COMMENT = b"\0\0"  # the last field of a zip file is the length of its comment
_NAME = re.compile(r"[A-Za-z0-9_./-]+")
_CHUNK = 1 << 20
_MOST_TEXT = 1 << 25  # bytes of the settings: JSON takes up to thirty times as much memory


def write_archive(path: str | os.PathLike[str], arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    """Write arrays and settings to a file, which at every moment is the old one or the new one, and whole.

    The file is complete on the disk before it appears under its name. If that fails, the old file is left as it
    was, and nothing else is left behind.

    Parameters
    ----------
    path : path
        The file. A link is followed. `numpy.load` opens it, too.
    arrays : mapping of str to array
        Of any type but objects. Names are made of letters, digits and ``_ . / -``.
    meta : mapping
        What JSON can hold; NaN and infinities are kept, tuples come back as lists.

    Raises
    ------
    InvalidParameter
        If a name, an array or `meta` cannot be stored.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.npz"
    ...     write_archive(path, {"w": np.ones(2)}, {"alpha": 0.1})
    ...     read_archive(path)
    ({'w': array([1., 1.])}, {'alpha': 0.1})
    """
    members = {name: _storable(name, array) for name, array in arrays.items()}
    text = _as_json(meta)
    with replacing(Path(path)) as file:
        with zipfile.ZipFile(file, "w") as archive:
            # ZipInfo's date is a constant: the same content gives the same bytes.
            archive.writestr(zipfile.ZipInfo(_META), text)
            for name, array in members.items():
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                    npy.write_array(member, array, allow_pickle=False)
        end = file.seek(-len(_NO_COMMENT), os.SEEK_END)
        seal = _MARK + _checksum(file, end).encode()
        file.seek(end)
        file.write(len(seal).to_bytes(2, "little") + seal)


def read_archive(path: str | os.PathLike[str]) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and the settings that `write_archive` stored.

    Parameters
    ----------
    path : path

    Returns
    -------
    arrays : dict of str to array
    meta : dict

    Raises
    ------
    DamagedFile
        If the file is not just as `write_archive` left it; nothing that is larger than the file is unpacked to see
        that. The checksum is no signature: who alters a file can give it the right one.
    OSError
        If there is no such file, or it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.npz"
    ...     np.savez(path, w=np.ones(2))
    ...     read_archive(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    stoic.errors.DamagedFile: ...model.npz was not written by stoic, or is cut off; make it again, or use a copy.
    """
    with Path(path).open("rb") as file:
        _check_seal(path, file)
        try:
            with zipfile.ZipFile(file) as archive:
                return _read_members(archive, file.seek(0, os.SEEK_END))
        except MemoryError:
            raise
        except Exception as error:  # made by hand with the right checksum: zipfile, NumPy and json raise anything
            if isinstance(error, OSError) and error.errno != errno.EINVAL:  # EINVAL: a place outside the file
                raise
            raise _damaged(path, f"has the right checksum but cannot be read ({error})") from error


def _read_members(archive: zipfile.ZipFile, size: int) -> tuple[Arrays, dict[str, Any]]:
    _check_sizes(archive.infolist(), size)
    meta = json.loads(archive.read(_META))
    if not isinstance(meta, dict):
        raise TypeError(f"{_META} holds no mapping")
    arrays: Arrays = {}
    for entry in archive.infolist():
        if entry.filename != _META:
            with archive.open(entry) as member:
                _check_shape(member, entry)
                arrays[entry.filename.removesuffix(".npy")] = npy.read_array(member, allow_pickle=False)
    return arrays, meta


def _check_sizes(entries: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse, before anything is unpacked, what takes more memory than the file, or has a name twice."""
    names = [entry.filename for entry in entries]
    twice = next((name for name in names if names.count(name) > 1), None) if len({*names}) < len(names) else None
    if twice is not None:
        raise ValueError(f"{twice} is in it twice")
    for entry in entries:
        if entry.filename != _META and not (entry.filename.endswith(".npy") and _NAME.fullmatch(entry.filename)):
            raise ValueError(f"{entry.filename!r} is the name of no array")
        if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
            raise ValueError(f"{entry.filename} is compressed, as stoic writes nothing")
        if entry.filename == _META and entry.file_size > _MOST_TEXT:
            raise ValueError(f"{_META} has {entry.file_size:,} bytes, of which at most {_MOST_TEXT:,} are read")
    if sum(entry.file_size for entry in entries) > size:
        raise ValueError(f"its entries overlap: together they have more than the {size:,} bytes of the file")


def _check_shape(member: Any, entry: zipfile.ZipInfo) -> None:
    """Refuse an array whose header tells of other numbers than there are, before memory is taken for them."""
    version = npy.read_magic(member)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(member)
    there = entry.file_size - member.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * max(1, dtype.itemsize) != there:
        raise ValueError(f"{entry.filename} is to have shape {shape} of {dtype}, but holds {there:,} bytes")
    member.seek(0)


def _check_seal(path: str | os.PathLike[str], file: BinaryIO) -> None:
    """Refuse a file unless its end is a comment that holds the checksum of what comes before."""
    size = file.seek(0, os.SEEK_END)
    end = size - _SEAL_SIZE - len(_NO_COMMENT)
    file.seek(max(0, end))
    tail = file.read()
    expected = _SEAL_SIZE.to_bytes(2, "little") + _MARK
    if end < 0 or not tail.startswith(expected):
        raise _damaged(path, "was not written by stoic, or is cut off")
    if tail.removeprefix(expected) != _checksum(file, end).encode():
        raise _damaged(path, "is damaged: its checksum differs from the one stored in it")


def _checksum(file: BinaryIO, end: int) -> str:
    """Return the checksum of a file up to a point, followed by an empty comment."""
    digest = hashlib.sha256()
    file.seek(0)
    while end > 0 and (chunk := file.read(min(_CHUNK, end))):
        digest.update(chunk)
        end -= len(chunk)
    digest.update(_NO_COMMENT)
    return digest.hexdigest()


def _damaged(path: str | os.PathLike[str], what: str) -> DamagedFile:
    return DamagedFile(f"{os.fspath(path)} {what}; make it again, or use a copy.")


def _storable(name: str, array: Any) -> NDArray[Any]:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidParameter(f"{name!r} cannot name an array; use letters, digits and the signs _ . / -.")
    try:
        found = np.asarray(array)
    except ValueError as error:
        raise InvalidParameter(f"the array {name!r} has rows that differ in length: {error}") from error
    if found.dtype.hasobject:
        raise InvalidParameter(
            f"the array {name!r} has dtype {found.dtype}, but objects cannot be stored; use numbers or text."
        )
    return found


def _as_json(meta: Mapping[str, Any]) -> str:
    try:
        text = json.dumps(dict(meta))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidParameter(
            f"meta cannot be stored: {error}; use dicts, lists, text, numbers, booleans and None."
        ) from error
    if len(text) > _MOST_TEXT:
        raise InvalidParameter(f"meta has {len(text):,} signs as JSON, but {_MOST_TEXT:,} at most can be stored.")
    return text
