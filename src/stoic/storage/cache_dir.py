"""The cache folder, for what can be made again: compiled kernels, parsed data."""

import os
import sys
from pathlib import Path


def user_cache() -> Path:
    """Return the folder for stoic's caches, as the environment or the custom of the system has it.

    It is `$STOIC_CACHE_DIR`, else `stoic` in the user's cache folder. It need not exist.

    Raises
    ------
    OSError
        If the user has no home folder.

    Examples
    --------
    >>> user_cache().is_absolute()
    True
    """
    try:
        if chosen := os.environ.get("STOIC_CACHE_DIR"):
            return Path(chosen).expanduser().absolute()
        if sys.platform == "win32":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "stoic"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "stoic"
        custom = Path(os.environ.get("XDG_CACHE_HOME", ""))
        return (custom if custom.is_absolute() else Path.home() / ".cache") / "stoic"
    except RuntimeError as error:  # pathlib: no home folder
        raise OSError(str(error)) from error
