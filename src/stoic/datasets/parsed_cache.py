"""A cache of parsed data sets: the few used last, by the content of their files."""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from stoic.protocols import Vector
from stoic.storage.archive import read_archive, write_archive
from stoic.storage.cache_dir import keep_newest, user_cache

CSR: TypeAlias = Any  # scipy.sparse.csr_array of float64

_FORMAT = 1  # raised when a change of the reader or of the archives would give another matrix
_N_FILES = 8
_STALE = 86_400.0  # seconds after which a temporary file is one of a process that was killed


def key_of(path: Path, options: Mapping[str, Any]) -> str:
    """Return a name for what a file with this content gives under these options."""
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    identity = json.dumps([_FORMAT, content, path.suffix.lower(), dict(options)], sort_keys=True)
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def load(key: str) -> tuple[CSR, Vector] | None:
    """Return the data set kept under a key; None if there is none, or it is damaged."""
    try:
        path = _path(key)
        arrays, meta = read_archive(path)
        if meta["key"] != key:  # renamed by hand
            return None
        X = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(meta["shape"]))
        y = arrays["y"]
    except (OSError, KeyError, TypeError, ValueError):  # DamagedFile is a ValueError
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # used now: among the newest
    return X, y


def keep(key: str, X: CSR, y: Vector) -> None:
    """Keep a matrix and its labels, where a folder can be written; elsewhere they are parsed anew in each run."""
    arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "y": np.asarray(y)}
    with contextlib.suppress(OSError):
        path = _path(key)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_archive(path, arrays, {"key": key, "shape": [int(size) for size in X.shape]})
        keep_newest(path.parent.glob("*.npz"), _N_FILES, idle=0.0)
        keep_newest(path.parent.glob(".stoic-*.tmp"), 0, idle=_STALE)  # left by processes that were killed


def _path(key: str) -> Path:
    return user_cache() / "data" / f"{key}.npz"
