"""E2006-tfidf: volatilities of stocks from the words of annual reports, read from the files of the LIBSVM site."""

import os
from pathlib import Path
from typing import NamedTuple

from stoic.datasets.compressed import as_path
from stoic.datasets.libsvm import read_libsvm
from stoic.datasets.parsed_cache import CSR
from stoic.errors import InvalidProblem
from stoic.protocols import Vector

N_TRAIN, N_TEST, N_FEATURES = 16_087, 3_308, 150_360
SOURCE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/regression.html#E2006-tfidf"


class Split(NamedTuple):
    """Rows and labels to learn from, and others to test on; both matrices have the same columns."""

    X_train: CSR
    y_train: Vector
    X_test: CSR
    y_test: Vector


def load_e2006(folder: str | os.PathLike[str], *, cache: bool = True) -> Split:
    """Read the data set E2006-tfidf from a folder that has its files.

    Nothing is downloaded. `stoic.datasets.synthetic.e2006_like` makes a data set of the same shape that needs no
    files.

    Parameters
    ----------
    folder : path
        Holds ``E2006.train.bz2`` and ``E2006.test.bz2``, or ``E2006.train`` and ``E2006.test``; where both are
        there, the compressed one is read, since damage of it is noticed.
    cache : bool, default True
        Keep what was read for the next time, see `stoic.datasets.libsvm.read_libsvm`.

    Returns
    -------
    Split
        16,087 rows to learn from and 3,308 to test on, with 150,360 columns each.

    Raises
    ------
    InvalidProblem
        If a file is missing, damaged, or not the one that the site has.

    Examples
    --------
    >>> load_e2006("no/such/folder")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    stoic.errors.InvalidProblem: no/such/folder has neither E2006.train.bz2 nor E2006.train; get ... from ...
    """
    place = as_path(folder)
    files = [_find(place, part) for part in ("train", "test")]
    X_train, y_train = _read(files[0], N_TRAIN, cache=cache)
    X_test, y_test = _read(files[1], N_TEST, cache=cache)
    return Split(X_train, y_train, X_test, y_test)


def _find(folder: Path, part: str) -> Path:
    names = (f"E2006.{part}.bz2", f"E2006.{part}")
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise InvalidProblem(
        f"{folder} has neither {names[0]} nor {names[1]}; get E2006.train.bz2 and E2006.test.bz2 from {SOURCE}."
    )


def _read(path: Path, n_rows: int, *, cache: bool) -> tuple[CSR, Vector]:
    X, y = read_libsvm(path, n_features=N_FEATURES, cache=cache)
    if len(y) != n_rows:
        raise InvalidProblem(
            f"{path} has {len(y):,} rows, but {n_rows:,} are required; get the file again from {SOURCE}."
        )
    return X, y
