"""Roles of the columns of a file: target, group and weight; the others are features, encoded as a matrix."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stoic.datasets.libsvm import read_libsvm
from stoic.datasets.tables import check_names, is_libsvm, read_columns
from stoic.errors import InvalidParameter, InvalidProblem
from stoic.protocols import Vector

if TYPE_CHECKING:
    from stoic.datasets.columns import Column
    from stoic.datasets.encoding import Encoding


class FileRows(NamedTuple):
    """Rows of a file: a matrix, and what was asked for of targets, groups, weights and columns to keep."""

    X: Any
    y: NDArray[Any] | None
    groups: NDArray[Any] | None
    weight: Vector | None
    kept: Mapping[str, Sequence[Any]] | None = None


@dataclass(frozen=True)
class Schema:
    """The roles of columns; those without one are features, encoded as at the fit.

    Parameters
    ----------
    target, group, weight : str, optional
        Columns of a CSV or Parquet file.
    leave_out : tuple of str
        Columns that are not used.
    imputes : bool
        Whether missing features are filled in: by the median of numbers and the most frequent category.
    encoding : Encoding, optional
        Of the features; None before the fit, and for LIBSVM.
    """

    target: str | None = None
    group: str | None = None
    weight: str | None = None
    leave_out: tuple[str, ...] = ()
    imputes: bool = False
    encoding: "Encoding | None" = None

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the columns of the matrix; None where they have none."""
        return None if self.encoding is None else self.encoding.names

    def read(self, path: Path, *, classifies: bool | None = None) -> "tuple[Schema, FileRows]":
        """Return the rows of a file to fit, and the schema with their encoding.

        Parameters
        ----------
        path : Path
        classifies : bool, optional
            Whether targets are classes; by default where they are not numbers.
        """
        if is_libsvm(path):
            self._check_unnamed(path)
            X, y = read_libsvm(path)
            return self, FileRows(X, y, None, None)
        from stoic.datasets.encoding import Encoding  # noqa: PLC0415 - imports pyarrow

        columns = read_columns(path)
        by_name = {column.name: column for column in columns}
        check_names(path, self._named_columns(), list(by_name))
        features = self._features(columns)
        if not features:
            raise InvalidProblem(f"{path} has no column left for features; leave out fewer.")
        encoding = Encoding.of(features, imputes=self.imputes)
        target = by_name[str(self.target)]
        is_class = not target.is_number if classifies is None else classifies
        y = target.as_labels() if is_class else target.as_numbers()
        return replace(self, encoding=encoding), self._table(encoding.apply(features), y, by_name)

    def read_test(self, path: Path, n_columns: int, *, classifies: bool) -> FileRows:
        """Return rows to test on, with their targets, groups and weights, encoded as at the fit.

        Parameters
        ----------
        path : Path
        n_columns : int
            Of the matrix.
        classifies : bool
            Whether targets are classes.
        """
        if self.encoding is None:
            X, y = read_libsvm(path)
            return FileRows(_with_columns(path, X, n_columns), y, None, None)
        by_name = {column.name: column for column in self._read_like(path)}
        roles = {"target": self.target, "group": self.group, "weight": self.weight}
        check_names(path, {role: name for role, name in roles.items() if name is not None}, list(by_name))
        target = by_name[str(self.target)]
        X = self.encoding.apply(self._features(list(by_name.values())))
        return self._table(X, target.as_labels() if classifies else target.as_numbers(), by_name)

    def read_features(self, path: Path, n_columns: int, keep: Sequence[str] = ()) -> FileRows:
        """Return rows to predict from `n_columns` features; columns of targets and weights may be there or not.

        Parameters
        ----------
        path : Path
        n_columns : int
            Of the matrix.
        keep : sequence of str
            Columns whose values are returned as they are; the model need not know them.
        """
        if self.encoding is None:
            if keep:
                raise InvalidParameter(
                    f"{path} is a LIBSVM file without named columns; leave out keep={keep[0]!r}."
                )
            return FileRows(_with_columns(path, read_libsvm(path)[0], n_columns), None, None, None)
        columns = self._read_like(path)
        by_name = {column.name: column for column in columns}
        for name in keep:
            check_names(path, {"keep": name}, list(by_name))
        known = {code.name for code in self.encoding.codes}
        features = [
            column for column in self._features(columns) if column.name in known or column.name not in keep
        ]
        rows = self._table(self.encoding.apply(features), None, by_name)
        return rows._replace(kept={name: by_name[name].as_given() for name in keep})

    def _read_like(self, path: Path) -> "list[Column]":
        if is_libsvm(path):
            raise InvalidProblem(f"{path} is a LIBSVM file, but the model was fitted to named columns.")
        return read_columns(path)

    def _table(self, X: Any, y: NDArray[Any] | None, by_name: "Mapping[str, Column]") -> FileRows:
        group, weight = by_name.get(str(self.group)), by_name.get(str(self.weight))
        labels = None if group is None else group.as_labels()
        return FileRows(X, y, labels, None if weight is None or y is None else weight.as_numbers())

    def _features(self, columns: "Sequence[Column]") -> "list[Column]":
        roles = {self.target, self.group, self.weight, *self.leave_out}
        return [column for column in columns if column.name not in roles]

    def _named_columns(self) -> dict[str, str]:
        asked = {"target": str(self.target), "group": self.group, "weight": self.weight}
        asked |= {f"leave_out[{i}]": name for i, name in enumerate(self.leave_out)}
        return {argument: name for argument, name in asked.items() if name is not None}

    def _check_unnamed(self, path: Path) -> None:
        given = {"target": self.target, "group": self.group, "weight": self.weight, "drop": self.leave_out or None}
        for argument, name in given.items():
            if name is not None:
                raise InvalidParameter(
                    f"{path} is a LIBSVM file without named columns; leave out {argument}={name!r}."
                )

    def as_json(self) -> dict[str, Any]:
        """Return the schema as values that JSON can hold."""
        encoding = None if self.encoding is None else self.encoding.as_json()
        return {
            "target": self.target,
            "group": self.group,
            "weight": self.weight,
            "leave_out": list(self.leave_out),
            "imputes": self.imputes,
            "encoding": encoding,
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "Schema":
        """Return the schema from what `as_json` returned."""
        if told["encoding"] is None:
            return cls(**{**told, "leave_out": tuple(told["leave_out"])})
        from stoic.datasets.encoding import Encoding  # noqa: PLC0415 - imports pyarrow

        parts = {"leave_out": tuple(told["leave_out"]), "encoding": Encoding.from_json(told["encoding"])}
        return cls(**{**told, **parts})


def _with_columns(path: Path, X: Any, n_columns: int) -> Any:
    """Return a CSR matrix with columns of zeros for those that no row of a LIBSVM file has."""
    if X.shape[1] > n_columns:
        raise InvalidProblem(f"{path} has {X.shape[1]} columns, but the model was fitted with {n_columns}.")
    return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_columns))


def read_labels(path: Path, n_rows: int) -> NDArray[Any]:
    """Return group labels from a text file, one a line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) != n_rows:
        raise InvalidProblem(f"{path} has {len(lines)} lines, but there are {n_rows} rows; give one label a line.")
    return np.array([line.strip() for line in lines])
