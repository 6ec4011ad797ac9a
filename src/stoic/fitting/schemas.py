"""Roles of the columns of a file: target, group and weight; the others are features, encoded as a matrix."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stoic.datasets.columns import Column
from stoic.datasets.encoding import Encoding
from stoic.datasets.guessing import Conventions
from stoic.datasets.libsvm import read_libsvm
from stoic.datasets.tables import ColumnsFile, check_names, is_libsvm, read_columns
from stoic.errors import InvalidParameter, InvalidProblem
from stoic.fitting.choices import (
    TargetKind,
    choose_features,
    kind_of_numbers,
    kind_of_target,
    no_features,
    notes_on_groups,
    notes_on_readings,
)
from stoic.fitting.gaps import Gaps, Missing, as_named, notes_on_gaps, rows_to_keep
from stoic.protocols import Vector


class FileRows(NamedTuple):
    """Rows of a file: a matrix, and what was asked for of targets, groups, weights and columns to keep.

    `notes` say what was chosen, `classifies` whether targets are classes, `gaps` which columns lack values,
    `places` which rows of the file these are if not all.
    """

    X: Any
    y: NDArray[Any] | None
    groups: NDArray[Any] | None
    weight: Vector | None
    notes: tuple[str, ...] = ()
    classifies: bool = False
    gaps: Gaps | None = None
    places: NDArray[np.intp] | None = None
    kept: Mapping[str, Sequence[Any]] | None = None

    def with_labels(self, path: Path) -> "FileRows":
        """Return the rows with groups from a text file, which has a line for each row of their own file."""
        if self.places is None or self.gaps is None:
            return self._replace(groups=read_labels(path, self.X.shape[0]))
        return self._replace(groups=read_labels(path, len(self.gaps.rows))[self.places])


@dataclass(frozen=True)
class Schema:
    """The roles of columns; those without one are features, encoded as at the fit.

    Parameters
    ----------
    target, group, weight : str, optional
        Columns of a file that names them.
    leave_out : tuple of str
        Columns that are not used; after `read` also those that it left out by itself.
    keep_columns : tuple of str
        Features that are used even if they seem to be of no use: see `choose_features`.
    group_feature : bool
        Whether the group is a feature, too.
    missing : {"refuse", "drop", "impute"}
        What is done with rows that lack a value. "impute" fills in the median of numbers and the most frequent
        category, and adds a column that says where, to each that lacks a value at the fit; rows without
        target, group or weight are dropped.
    told : tuple of str or None
        The decimal mark and the order of dates, see `Conventions`.
    encoding : Encoding, optional
        Of the features; None before the fit, and for LIBSVM.
    """

    target: str | None = None
    group: str | None = None
    weight: str | None = None
    leave_out: tuple[str, ...] = ()
    keep_columns: tuple[str, ...] = ()
    group_feature: bool = False
    missing: Missing = "refuse"
    told: tuple[Any, Any] = (None, None)
    encoding: Encoding | None = None

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
            Whether targets are classes; by default text, truth values, 0 and 1, -1 and 1.
        """
        if is_libsvm(path):
            self._check_unnamed(path)
            return self, _unnamed_rows(path, classifies)
        columns, notes = self._read_columns(path)
        by_name = {column.name: column for column in columns}
        self._check_names(path, list(by_name))
        features = self._features(columns)
        chosen = choose_features(features, self.keep_columns)
        if not chosen.columns:
            raise no_features(path, chosen.notes)
        target = by_name[str(self.target)]
        kind = kind_of_target(target, classifies)
        roles = [as_named(target) if kind.classifies else target, *self._other_roles(by_name)]
        gaps = Gaps(Gaps.of([*features, *roles]).counts, Gaps.of([*chosen.columns, *roles]).rows)
        rows, said = rows_to_keep(path, self.missing, chosen.columns, roles)
        if rows is not None:
            chosen = chosen.of_rows(rows, self.keep_columns)
            if not chosen.columns:
                raise no_features(path, chosen.notes)
        used, roles = chosen.columns, _taken(roles, rows)
        y = roles[0].as_labels() if kind.classifies else roles[0].as_numbers()
        encoding = Encoding.of(used, imputes=self.missing == "impute")
        table = self._table(encoding.apply(used), y, {column.name: column for column in roles})
        on_groups = [] if table.groups is None else notes_on_groups(str(self.group), table.groups)
        read = notes_on_readings([*used, roles[0]])
        table = table._replace(
            notes=(*notes, *read, *chosen.notes, *kind.notes, *on_groups, *said),
            classifies=kind.classifies,
            gaps=gaps,
            places=rows,
        )
        return replace(self, encoding=encoding, leave_out=(*self.leave_out, *chosen.left_out)), table

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
            unnamed = _unnamed_rows(path, classifies)
            return unnamed._replace(X=_with_columns(path, unnamed.X, n_columns))
        columns, notes = self._read_like(path)
        by_name = {column.name: column for column in columns}
        self._check_roles(path, list(by_name))
        target = by_name[str(self.target)]
        roles = [as_named(target) if classifies else target, *self._other_roles(by_name)]
        features = self.encoding.ordered(self._features(columns))
        rows, said = rows_to_keep(path, self.missing, features, roles)
        used, roles = _taken(features, rows), _taken(roles, rows)
        y = roles[0].as_labels() if classifies else roles[0].as_numbers()
        table = self._table(self.encoding.apply(used), y, {column.name: column for column in roles})
        return table._replace(notes=(*notes, *said), classifies=classifies)

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
        columns, notes = self._read_like(path)
        by_name = {column.name: column for column in columns}
        for name in keep:
            check_names(path, {"keep": name}, list(by_name))
        known = {code.name for code in self.encoding.codes}
        wanted = [column for column in self._features(columns) if column.name in known or column.name not in keep]
        features = self.encoding.ordered(wanted)
        said = notes_on_gaps(path, self.encoding, features)
        table = self._table(self.encoding.apply(features), None, by_name)
        return table._replace(notes=(*notes, *said), kept={name: by_name[name].as_given() for name in keep})

    def _read_like(self, path: Path) -> ColumnsFile:
        """Return the columns of a file like that of the fit."""
        if is_libsvm(path):
            raise InvalidProblem(f"{path} is a LIBSVM file, but the model was fitted to named columns.")
        return self._read_columns(path)

    def _read_columns(self, path: Path) -> ColumnsFile:
        return read_columns(path, Conventions(*self.told))

    def _other_roles(self, by_name: Mapping[str, Column]) -> list[Column]:
        group = [] if self.group is None else [as_named(by_name[self.group])]
        return group if self.weight is None else [*group, by_name[self.weight]]

    def _table(self, X: Any, y: NDArray[Any] | None, by_name: Mapping[str, Column]) -> FileRows:
        group, weight = by_name.get(str(self.group)), by_name.get(str(self.weight))
        labels = None if group is None else group.as_labels()
        return FileRows(X, y, labels, None if weight is None or y is None else weight.as_numbers())

    def _features(self, columns: Sequence[Column]) -> list[Column]:
        roles = {self.target, self.weight, *self.leave_out} | ({self.group} if not self.group_feature else set())
        return [column for column in columns if column.name not in roles]

    def _check_names(self, path: Path, names: Sequence[str]) -> None:
        self._check_roles(path, names)
        for argument, asked in (("drop", self.leave_out), ("keep_column", self.keep_columns)):
            for name in set(asked).difference(names):
                check_names(path, {argument: name}, names)

    def _check_roles(self, path: Path, names: Sequence[str]) -> None:
        roles = {"target": str(self.target), "group": self.group, "weight": self.weight}
        check_names(path, {role: name for role, name in roles.items() if name is not None}, names)

    def _check_unnamed(self, path: Path) -> None:
        given = {"target": self.target, "group": self.group, "weight": self.weight, "drop": self.leave_out or None}
        given |= {"keep_column": self.keep_columns or None}
        for argument, name in given.items():
            if name is not None:
                raise InvalidParameter(
                    f"{path} is a LIBSVM file without named columns; leave out {argument}={name!r}."
                )

    @classmethod
    def from_options(cls, given: dict[str, Any]) -> "Schema":
        """Return the schema that options of a command ask for, and take them out of `given`."""
        roles = {name: given.pop(name) for name in ("target", "group", "weight", "group_feature", "missing")}
        roles |= {"leave_out": tuple(given.pop("drop")), "keep_columns": tuple(given.pop("keep_column"))}
        return cls(**roles, told=(given.pop("decimal"), given.pop("dates")))

    def as_json(self) -> dict[str, Any]:
        """Return the schema as values that JSON can hold."""
        encoding = None if self.encoding is None else self.encoding.as_json()
        return {**self.__dict__, "encoding": encoding} | {name: list(getattr(self, name)) for name in _LISTS}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "Schema":
        """Return the schema from what `as_json` returned."""
        parts: dict[str, Any] = {name: tuple(told[name]) for name in _LISTS}
        if told["encoding"] is not None:
            parts["encoding"] = Encoding.from_json(told["encoding"])
        return cls(**{**told, **parts})


_LISTS = ("leave_out", "keep_columns", "told")


def _unnamed_rows(path: Path, classifies: bool | None) -> FileRows:
    """Return the rows of a LIBSVM file; labels that are marks of two classes are whole numbers."""
    X, y = read_libsvm(path)
    kind = kind_of_numbers("label", y) if classifies is None else TargetKind(classifies)
    labels = y.astype(np.int64) if kind.classifies and (y == np.trunc(y)).all() else y
    return FileRows(X, labels, None, None, kind.notes, kind.classifies)


def _taken(columns: Sequence[Column], rows: NDArray[np.intp] | None) -> list[Column]:
    return list(columns) if rows is None else [column.take(rows) for column in columns]


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
