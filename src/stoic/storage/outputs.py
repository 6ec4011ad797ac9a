"""The gate for output: what is to be written is checked before the work, not after it."""

import errno
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from stoic.errors import InvalidParameter


def output_file(path: str | os.PathLike[str]) -> Path:
    """Return the file that a path stands for, where links lead; it is there and regular, or not there.

    Raises
    ------
    OSError
        If there is something else, such as a folder, a device or a pipe: no file may take its place.
    """
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return target
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder, not a file", os.fspath(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))
    return target


def check_output(path: str | os.PathLike[str]) -> None:
    """Raise `InvalidParameter` unless a regular file can be written at a path, in a folder that exists.

    Examples
    --------
    >>> check_output("no/such/folder/model.stoic")
    Traceback (most recent call last):
    stoic.errors.InvalidParameter: 'no/such/folder/model.stoic' cannot be written: the folder \
'no/such/folder' does not exist; make it, or give another path.
    """
    try:
        folder = output_file(path).parent
        if not folder.is_dir():
            what = "does not exist" if not folder.exists() else "is a file"
            given = os.fspath(Path(path).parent)
            raise InvalidParameter(_refusal(path, f"the folder {given!r} {what}; make it, or give another path"))
        with tempfile.NamedTemporaryFile(dir=folder):
            return
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidParameter):
            raise
        raise InvalidParameter(_refusal(path, f"{_reason(error)}; give another path")) from error


def check_outputs(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """Check every output that is given; no two may be one file, and none an input.

    Parameters
    ----------
    outputs, inputs : mapping of str to Path
        By the names that messages have for them.

    Raises
    ------
    InvalidParameter
        If one cannot be written, or would take the place of another.
    """
    taken = [(name, path) for name, path in inputs.items() if path is not None]
    for name, path in outputs.items():
        if path is None:
            continue
        for other, before in taken:
            if _is_same(path, before):
                raise InvalidParameter(
                    f"{name} and {other} are the same file, {os.fspath(path)!r}; give another {name}."
                )
        check_output(path)
        taken.append((name, path))


def check_output_folder(folder: str | os.PathLike[str]) -> None:
    """Raise `InvalidParameter` unless files can be written in a folder, which is made where it is missing."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            return
    except (OSError, ValueError) as error:
        raise InvalidParameter(
            f"no files can be written in the folder {os.fspath(folder)!r}: {_reason(error)}; give another."
        ) from error


def _is_same(one: Path, other: Path) -> bool:
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return one.samefile(other)
    except (OSError, ValueError):  # one of them is yet to be made
        return False


def _refusal(path: str | os.PathLike[str], why: str) -> str:
    return f"{os.fspath(path)!r} cannot be written: {why}."


def _reason(error: OSError | ValueError) -> str:
    return str(getattr(error, "strerror", None) or error).rstrip(".")
