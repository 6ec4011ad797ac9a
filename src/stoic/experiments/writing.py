"""Write a file in one move: at any moment it is whole, the old one or the new one."""

import contextlib
import os
import shutil
from pathlib import Path
from uuid import uuid4


def replace_file(path: Path, content: bytes | str) -> None:
    """Put content in place of a file, or make the file.

    The content is complete on the disk before it appears under its name. If that fails, the old file is left as
    it was, and nothing else is left behind.

    Parameters
    ----------
    path : Path
        In a folder that exists. The mode of the file it replaces is kept.
    content : bytes or str
        Text is written as UTF-8, its line ends as they are.

    Raises
    ------
    OSError
        If the file cannot be written, say because the disk is full.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "notes.txt"
    >>> replace_file(path, "calm")
    >>> path.read_text()
    'calm'
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            shutil.copymode(path, temporary)
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
