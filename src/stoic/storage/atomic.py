"""Atomic writes: at any moment a file is whole, the old one or the new one."""

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from stoic.storage.outputs import output_file


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write under another name, and rename it to `path` when all of it is on the disk.

    A link is followed, and only a regular file is replaced, whose mode is kept. If anything fails, the old file is
    left as it was, and nothing else is left behind; an OSError names `path`.
    """
    given, path = path, output_file(path)
    temporary = path.with_name(f".stoic-{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("x+b") as file:
            yield cast("BinaryIO", file)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            shutil.copymode(path, temporary)
        os.replace(temporary, path)  # noqa: PTH105 - tests make it fail
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            error.filename, error.filename2 = str(given), None  # a full disk has no name, and ours says nothing
        raise
    _sync_folder(path.parent)


def replace_file(path: Path, content: bytes | str) -> None:
    """Put content in place of a file, or make the file.

    Parameters
    ----------
    path : Path
        In a folder that exists.
    content : bytes or str
        Text is written as UTF-8, its line ends as they are.

    Raises
    ------
    OSError
        If the file cannot be written, say because the disk is full.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "notes.txt"
    ...     replace_file(path, "calm")
    ...     path.read_text()
    'calm'
    """
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def _sync_folder(folder: Path) -> None:
    """Have the new name on the disk, too, where the system can do that."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
