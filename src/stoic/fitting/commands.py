"""The work of ``stoic fit``, ``predict`` and ``inspect``, as lines of text; the commands parse and print."""

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from stoic.datasets.tables import is_libsvm
from stoic.errors import InvalidParameter
from stoic.extras import not_installed
from stoic.fitting.files import columns_as_csv, fit_file, predict_file, save_fitted, write_columns
from stoic.fitting.inspection import Section, groups_of, inspect_model, inspect_rows
from stoic.fitting.schemas import Schema
from stoic.fitting.summary import NO_PICTURES, write_summary
from stoic.reports.text_tables import in_columns

_ROLES = ("target", "group", "weight")


def run_fit(
    data: Path,
    *,
    out: Path,
    summary: Path | None,
    missing: str,
    drop: Sequence[str],
    groups_file: Path | None,
    classifies: bool | None,
    seed: int,
    **given: Any,
) -> Iterator[str]:
    """Fit a file, write the model and its page, and yield lines about the fit."""
    roles = {name: given.pop(name) for name in _ROLES}
    schema = Schema(**roles, leave_out=tuple(drop), imputes=missing == "impute")
    if schema.target is None and not is_libsvm(data):
        raise InvalidParameter(f"--target names no column of {data}; give the column to predict.")
    settings = {name: value for name, value in given.items() if value is not None}
    settings |= {"random_state": seed, "verbose": True}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fitted = fit_file(data, schema, settings, classifies=classifies, labels=groups_file)
    page = summary or out.with_suffix(".html")
    notes = [str(warning.message) for warning in said] + [NO_PICTURES] * len(not_installed("matplotlib"))
    save_fitted(fitted, out)
    write_summary(fitted, data, page, notes)
    yield from (f"Note: {note}" for note in notes)
    yield from text_of([groups_of(fitted.model)])
    yield f"The model: {out}"
    yield f"The page about it: {page}"


def run_predict(
    model: Path, data: Path, *, out: Path | None, probabilities: bool, new_groups: bool
) -> Iterator[str]:
    """Predict a file; yield the predictions, or where they were written."""
    columns = predict_file(model, data, probabilities=probabilities, new_groups=new_groups)
    if out is None:
        yield columns_as_csv(columns).rstrip("\n")
    else:
        write_columns(columns, out)
        yield f"{len(columns['prediction']):,} predictions: {out}"


def run_inspect(path: Path, *, drop: Sequence[str], missing: str, **roles: Any) -> Iterator[str]:
    """Yield a description of a model or of the rows of a file."""
    try:
        is_table = is_libsvm(path) is not None
    except InvalidParameter:
        is_table = False
    if not is_table:
        yield from text_of(inspect_model(path))
        return
    schema = Schema(**roles, leave_out=tuple(drop), imputes=missing == "impute")
    if schema.target is None and not is_libsvm(path):
        raise InvalidParameter(f"--target names no column of {path}; give the column that is to be predicted.")
    schema, table = schema.read(path)
    yield from text_of(inspect_rows(table, schema))


def text_of(sections: Sequence[Section]) -> Iterator[str]:
    """Yield sections as plain text."""
    for section in sections:
        yield section.title
        rows = [section.head, *section.rows] if any(section.head) else list(section.rows)
        yield from (f"  {line}" for line in in_columns([[str(cell) for cell in row] for row in rows]).splitlines())
        yield from (f"  {note}" for note in section.notes)
        yield ""
