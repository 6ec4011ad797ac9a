"""The work of ``stoic fit``, ``predict`` and ``inspect``, as lines of text; the commands parse and print."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from stoic.datasets.tables import is_libsvm, is_table
from stoic.errors import InvalidParameter
from stoic.fitting.answer_tables import legend, short_tables
from stoic.fitting.files import columns_as_csv, predict_file, read_file, save_fitted, write_columns
from stoic.fitting.inspection import Section, groups_of, inspect_model, inspect_rows
from stoic.fitting.pictures import NO_PICTURES, can_draw
from stoic.fitting.plain_text import text_of
from stoic.fitting.schemas import Schema
from stoic.fitting.summary import write_summary
from stoic.fitting.trial import Tried, fit_and_hold_out, fit_and_test_on, fit_untested
from stoic.storage.outputs import check_outputs

_MOST_GROUPS = 9


def run_fit(
    data: Path,
    *,
    out: Path,
    summary: Path | None,
    groups_file: Path | None,
    classifies: bool | None,
    test: Path | None,
    no_test: bool,
    seed: int,
    **given: Any,
) -> Iterator[str]:
    """Fit a file, write the model and its page, and yield lines about the fit."""
    if test is not None and no_test:
        raise InvalidParameter(f"--test {test} and --no-test were both given; leave out one.")
    schema = Schema.from_options(given)
    if schema.target is None and not is_libsvm(data):
        raise InvalidParameter(f"--target names no column of {data}; give the column to predict.")
    page = summary or out.with_suffix(".html")
    check_outputs({"--out": out, "--summary": page}, {"DATA": data, "--groups-file": groups_file, "--test": test})
    settings = {name: value for name, value in given.items() if value is not None}
    settings |= {"random_state": seed, "verbose": True}
    rows = read_file(data, schema, classifies=classifies, labels=groups_file)
    if no_test:
        tried = fit_untested(rows, settings)
    elif test is not None:
        tried = fit_and_test_on(rows, settings, test)
    else:
        tried = fit_and_hold_out(rows, settings, seed)
    if not can_draw():
        tried = tried._replace(notes=(*tried.notes, NO_PICTURES))
    save_fitted(tried.fitted, out)
    write_summary(tried, data, page)
    yield from _told(tried)
    yield f"The model: {out}"
    yield f"The page about it: {page}"


def _told(tried: Tried) -> Iterator[str]:
    """Yield the notes on a fit, and its answer, or without one the groups in training."""
    yield from (f"Note: {note}" for note in tried.notes)
    found = tried.fitted.answer
    if found is None:
        yield from text_of([groups_of(tried.fitted.model)])
        return
    yield from text_of([*short_tables(found, _MOST_GROUPS), Section("Columns", ("", ""), legend(found))])
    yield tried.belongs
    yield f"Verdict: {found.verdict()}"


def run_predict(
    model: Path,
    data: Path,
    *,
    out: Path | None,
    keep: Sequence[str],
    probabilities: bool | None,
    new_groups: bool,
    note: Callable[[str], None],
) -> Iterator[str]:
    """Predict a file; yield the predictions, or where they were written, and note what was chosen."""
    check_outputs({"--out": out}, {"MODEL": model, "DATA": data})
    how: dict[str, Any] = {"keep": keep, "probabilities": probabilities, "new_groups": new_groups}
    columns = predict_file(model, data, say=note, **how)
    if out is None:
        yield columns_as_csv(columns).rstrip("\n")
    else:
        write_columns(columns, out)
        yield f"{len(columns['prediction']):,} predictions: {out}"


def run_inspect(path: Path, *, classifies: bool | None, **given: Any) -> Iterator[str]:
    """Yield a description of a model or of the rows of a file."""
    schema = Schema.from_options(given)
    if not is_table(path) and schema.target is None:
        yield from text_of(inspect_model(path))
        return
    if schema.target is None and not is_libsvm(path):
        raise InvalidParameter(f"--target names no column of {path}; give the column that is to be predicted.")
    schema, table = schema.read(path, classifies=classifies)
    yield from (f"Note: {note}" for note in table.notes)
    yield from text_of(inspect_rows(table, schema))
