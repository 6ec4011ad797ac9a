"""The data of an experiment: read once, kept as files that all processes share, noise added by name."""

from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stoic.datasets.e2006 import load_e2006
from stoic.datasets.noise import add_noise, make_noises
from stoic.datasets.synthetic import e2006_like
from stoic.datasets.tables import read_table
from stoic.errors import InvalidParameter
from stoic.inners.designs import Matrix
from stoic.inners.labels import encode_groups
from stoic.protocols import Vector
from stoic.studies.paper.spec import Spec
from stoic.studies.shared.seeds import generator

Codes: TypeAlias = NDArray[np.intp]


class DataRows(NamedTuple):
    """Features, labels and group numbers of some rows."""

    X: Matrix
    y: Vector
    groups: Codes


class Material(NamedTuple):
    """Training rows in random order, the last ones for validation, and test rows.

    `group_names` are those of the file's groups, where it has some; with noise the kinds of noise are the groups.
    """

    train: DataRows
    test: DataRows
    n_fit: int
    group_names: tuple[str, ...]


def prepare_material(spec: Spec) -> Material:
    """Read or make the data, and put the training rows into the order that a seed gives."""
    train, test, names = _load(spec)
    order = generator(spec.seed, "validation rows").permutation(len(train.y))
    train = DataRows(train.X[order], train.y[order], train.groups[order])
    n_fit = len(order) - round(spec.validation_share * len(order))
    if not 0 < n_fit < len(order):
        raise InvalidParameter(
            f"{len(order)} training rows are too few for validation_share={spec.validation_share}."
        )
    return Material(train, test, n_fit, names)


def _load(spec: Spec) -> tuple[DataRows, DataRows, tuple[str, ...]]:
    if spec.data == "e2006-like":
        made = e2006_like(seed=spec.seed, size=spec.size)
        return _ungrouped(made.X_train, made.y_train), _ungrouped(made.X_test, made.y_test), ("all",)
    if spec.data == "e2006":
        read = load_e2006(Path(spec.data_dir or "."))
        return _ungrouped(read.X_train, read.y_train), _ungrouped(read.X_test, read.y_test), ("all",)
    table = read_table(Path(spec.data), target=spec.target, group=spec.group)
    labels, codes = encode_groups(table.groups, len(table.y))
    chosen = generator(spec.seed, "test rows").random(len(table.y)) < spec.test_share
    if chosen.all() or not chosen.any():
        raise InvalidParameter(f"{spec.data!r} has {len(table.y)} rows, too few to set some aside for testing.")
    train, test = (DataRows(table.X[part], table.y[part], codes[part]) for part in (~chosen, chosen))
    return train, test, tuple(str(label) for label in labels)


def _ungrouped(X: Matrix, y: Vector) -> DataRows:
    return DataRows(X, y, np.zeros(len(y), dtype=np.intp))


def with_noise(rows: DataRows, spec: Spec, *names: str | float) -> DataRows:
    """Return the rows with noise on their labels, the kinds of noise as groups; the names seed it."""
    if not spec.noise:
        return rows
    noises = make_noises(spec.noise, share=spec.sparse_share)
    labels, groups = add_noise(rows.y, noises, generator(spec.seed, "noise", *names))
    return DataRows(rows.X, labels, groups)


def description(material: Material, spec: Spec) -> dict[str, Any]:
    """Return facts on the data that a reader should know."""
    train, test = material.train, material.test
    stored = int(getattr(train.X, "nnz", train.X.size))
    sizes = np.bincount(train.groups, minlength=len(material.group_names))
    return {
        "training rows": len(train.y),
        "validation rows": len(train.y) - material.n_fit,
        "test rows": len(test.y),
        "columns": int(train.X.shape[1]),
        "entries per row": stored / len(train.y),
        "labels": {"mean": float(train.y.mean()), "deviation": float(train.y.std())},
        "groups of the data": dict(zip(material.group_names, sizes.tolist(), strict=True)),
        "groups of the problem": list(spec.noise) or list(material.group_names),
    }


def noise_of_the_grid(material: Material, spec: Spec) -> dict[str, dict[str, float]]:
    """Return the size of the noise of the grid, by kind."""
    rows = with_noise(material.train, spec, "grid")
    by_kind = {name: (rows.y - material.train.y)[rows.groups == k] for k, name in enumerate(spec.noise)}
    return {
        name: {
            "median": float(np.median(noise)),
            "mean square": float(np.mean(noise**2)),
            "largest": float(np.abs(noise).max()),
        }
        for name, noise in by_kind.items()
        if noise.size
    }


def first_rows(rows: DataRows, n: int) -> DataRows:
    """Return the first n rows; of a CSR matrix without a copy."""
    if isinstance(rows.X, np.ndarray):
        return DataRows(rows.X[:n], rows.y[:n], rows.groups[:n])
    end = rows.X.indptr[n]
    parts = rows.X.data[:end], rows.X.indices[:end], rows.X.indptr[: n + 1]
    return DataRows(sparse.csr_array(parts, shape=(n, rows.X.shape[1])), rows.y[:n], rows.groups[:n])


def last_rows(rows: DataRows, start: int) -> DataRows:
    """Return the rows from number `start` on."""
    return DataRows(rows.X[start:], rows.y[start:], rows.groups[start:])


def save_material(material: Material, folder: Path) -> None:
    """Write the arrays as files that processes can map into memory."""
    for part in ("train", "test"):
        for name, array in _arrays(getattr(material, part)).items():
            np.save(folder / f"{part}_{name}.npy", array)
    np.savez(folder / "rest.npz", n_fit=material.n_fit, names=np.array(material.group_names))


def load_material(folder: Path) -> Material:
    """Return saved material; the arrays are read from the files as they are needed."""
    with np.load(folder / "rest.npz") as rest:
        n_fit, names = int(rest["n_fit"]), tuple(str(name) for name in rest["names"])
    return Material(_mapped(folder, "train"), _mapped(folder, "test"), n_fit, names)


def _arrays(rows: DataRows) -> dict[str, Any]:
    rest = {"y": rows.y, "groups": rows.groups}
    if isinstance(rows.X, np.ndarray):
        return {"X": rows.X, **rest}
    X = rows.X
    return {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape), **rest}


def _mapped(folder: Path, part: str) -> DataRows:
    def array(name: str) -> Any:
        return np.asarray(np.load(folder / f"{part}_{name}.npy", mmap_mode="r"))

    if (folder / f"{part}_X.npy").exists():
        return DataRows(array("X"), array("y"), array("groups"))
    X = sparse.csr_array((array("data"), array("indices"), array("indptr")), shape=tuple(array("shape")))
    return DataRows(X, array("y"), array("groups"))
