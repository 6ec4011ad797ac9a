"""Fit a model to a file, and predict the rows of another."""

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stoic.errors import InvalidParameter, InvalidProblem
from stoic.estimators.base import GroupDROModel
from stoic.estimators.classifier import GroupDROClassifier
from stoic.estimators.files import load_columns, load_model, save_model
from stoic.estimators.regressor import GroupDRORegressor
from stoic.fitting.answer import Answer
from stoic.fitting.saved_columns import schema_from
from stoic.fitting.schemas import FileRows, Schema
from stoic.reports.text_tables import as_csv
from stoic.storage.atomic import replace_file

Columns: TypeAlias = dict[str, NDArray[Any]]

_MOST_SHOWN = 5


class Rows(NamedTuple):
    """The rows of a file, how their columns were made, and whether their targets are classes."""

    schema: Schema
    table: FileRows
    classifies: bool


class Fitted(NamedTuple):
    """A model, how its columns were made, the rows it was fitted to, and how a model like it did on other rows."""

    model: GroupDROModel
    schema: Schema
    table: FileRows
    answer: Answer | None = None


def read_file(path: Path, schema: Schema, *, classifies: bool | None = None, labels: Path | None = None) -> Rows:
    """Return the rows of a file to fit; see `fit_file`."""
    if labels is not None and schema.group is not None:
        raise InvalidParameter(
            f"group={schema.group!r} and labels={str(labels)!r} both name the groups; give one."
        )
    schema, table = schema.read(path, classifies=classifies)
    if labels is not None:
        table = table.with_labels(labels)
    return Rows(schema, table, table.classifies)


def fit_rows(rows: Rows, settings: Mapping[str, Any]) -> Fitted:
    """Return a model for the rows of a file; see `fit_file`."""
    model = (GroupDROClassifier if rows.classifies else GroupDRORegressor)(**settings)
    table = rows.table
    fitted = model.fit(table.X, table.y, groups=table.groups, sample_weight=table.weight)
    return Fitted(fitted, rows.schema, table)


def fit_file(
    path: Path,
    schema: Schema,
    settings: Mapping[str, Any],
    *,
    classifies: bool | None = None,
    labels: Path | None = None,
) -> Fitted:
    """Fit the rows of a LIBSVM, CSV or Parquet file.

    Parameters
    ----------
    path : Path
    schema : Schema
        The roles of the columns.
    settings : mapping
        Of the estimator.
    classifies : bool, optional
        Whether targets are classes; by default text, truth values, 0 and 1, -1 and 1.
    labels : Path, optional
        A text file with the group of each row, in the place of a column.

    Returns
    -------
    Fitted
    """
    return fit_rows(read_file(path, schema, classifies=classifies, labels=labels), settings)


def save_fitted(fitted: Fitted, path: Path) -> None:
    """Write a model with its schema to one file."""
    save_model(fitted.model, path, columns=fitted.schema.as_json())


def load_fitted(path: Path) -> tuple[GroupDROModel, Schema]:
    """Return a model and its schema from a file."""
    model = load_model(path)
    return model, schema_from(path, load_columns(path), model.n_features_in_)


def predict_file(
    model_path: Path,
    path: Path,
    *,
    keep: Sequence[str] = (),
    probabilities: bool | None = None,
    new_groups: bool = False,
    say: Callable[[str], None] | None = None,
) -> Columns:
    """Return the predictions of a saved model for the rows of a file, by name and in the order of the rows.

    Parameters
    ----------
    model_path, path : Path
    keep : sequence of str
        Columns of the file that come before the predictions.
    probabilities : bool, optional
        Whether a classifier's probabilities come with its classes; by default they do.
    new_groups : bool, default False
        Whether rows of groups that the model has not seen are predicted; else they are refused.
    say : callable, optional
        Called with each sentence on how the file was read.

    Raises
    ------
    InvalidProblem
        If the columns are not those of the fit, or a group is new.
    """
    model, schema = load_fitted(model_path)
    table = schema.read_features(path, model.n_features_in_, keep)
    if say is not None:
        for note in table.notes:
            say(note)
    if not new_groups and table.groups is not None:
        _check_groups(path, table.groups, model.groups_)
    made: Columns = {"prediction": model.predict(table.X)}
    if isinstance(model, GroupDROClassifier) and probabilities is not False:
        shares = model.predict_proba(table.X)
        made |= {f"probability={name}": shares[:, k] for k, name in enumerate(model.classes_.tolist())}
    elif probabilities:
        raise InvalidParameter(f"{model_path} holds a regression, which has no probabilities.")
    kept = dict(table.kept or {})
    twice = next((name for name in kept if name in made), None)
    if twice is not None:
        raise InvalidParameter(f"keep={twice!r} is the name of a column of predictions, too; rename it in {path}.")
    return {**{name: np.array(values, dtype=object) for name, values in kept.items()}, **made}


def _check_groups(path: Path, groups: NDArray[Any], known: NDArray[Any]) -> None:
    is_new = ~np.isin(groups.astype(str), known.astype(str))
    if is_new.any():
        row = int(np.argmax(is_new))
        shown = ", ".join(map(repr, known.tolist()[:_MOST_SHOWN]))
        raise InvalidProblem(
            f"{path}: row {row + 1} is of the group {groups[row]!s}, which the model has not seen (it has {shown}"
            f"); --new-groups predicts such rows, too."
        )


def write_columns(columns: Columns, path: Path) -> None:
    """Write columns to a CSV or Parquet file, in one move.

    Raises
    ------
    InvalidParameter
        If the name ends in neither ``.csv`` nor ``.parquet``.
    """
    kind = path.suffix.lower()
    if kind == ".csv":
        replace_file(path, columns_as_csv(columns))
    elif kind == ".parquet":
        from pyarrow import parquet, table  # noqa: PLC0415 - optional

        buffer = io.BytesIO()
        parquet.write_table(table(columns), buffer)
        replace_file(path, buffer.getvalue())
    else:
        raise InvalidParameter(f"{path} ends in neither .csv nor .parquet; rename it.")


def columns_as_csv(columns: Columns) -> str:
    """Return columns as CSV, numbers with all their digits."""
    return as_csv(list(columns), zip(*(values.tolist() for values in columns.values()), strict=True))
