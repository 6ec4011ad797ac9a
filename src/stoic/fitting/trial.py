"""A fit and its test: on rows held out, on the rows of another file, or not at all."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stoic.estimators.base import MissingGroupsWarning
from stoic.fitting.answer import Answer, answer
from stoic.fitting.files import Fitted, Rows, fit_rows
from stoic.fitting.holding_out import ONE_IN, Split, counted_rows, hold_out, part_of
from stoic.fitting.measuring import FEWEST
from stoic.fitting.rivals import kind_of_average
from stoic.fitting.schemas import FileRows
from stoic.reports.words import counted

_NO_GROUP = "without --group all rows count alike, and no group is protected."


class Tried(NamedTuple):
    """A fitted model with its answer, notes on both, and what the numbers of the answer belong to."""

    fitted: Fitted
    notes: tuple[str, ...]
    belongs: str = ""


def fit_untested(rows: Rows, settings: Mapping[str, Any]) -> Tried:
    """Return a model for all rows, without an answer."""
    with _noted() as notes:
        fitted = fit_rows(rows, settings)
    return Tried(fitted, (*rows.table.notes, *notes))


def fit_and_test_on(rows: Rows, settings: Mapping[str, Any], test: Path) -> Tried:
    """Return a model for all rows, and its answer on the rows of another file."""
    tried = fit_untested(rows, settings)
    model, schema = tried.fitted.model, tried.fitted.schema
    others = schema.read_test(test, model.n_features_in_, classifies=rows.classifies)
    others = part_of(others, counted_rows(others))
    with _noted() as notes:
        tested_on = f"the {counted(others.X.shape[0], 'row')} of {test.name}"
        found = answer(model, rows.table, others, tested_on, schema.target)
    belongs = "The numbers belong to the model that was written."
    told = [note if test.name in note else f"In {test.name}: {note}" for note in others.notes]
    notes = [*told, *_on_rivals(notes), *_on_classes(model, others, test)]
    return Tried(tried.fitted._replace(answer=found), (*tried.notes, *notes), belongs)


def fit_and_hold_out(rows: Rows, settings: Mapping[str, Any], seed: int) -> Tried:
    """Return a model for all rows, and the answer of one for four fifths of them on the others."""
    split = hold_out(rows.table, seed, classifies=rows.classifies)
    if split.test.X.shape[0] < FEWEST:
        tried = fit_untested(rows, settings)
        note = f"{counted(rows.table.X.shape[0], 'row')} are too few to hold a fifth out: nothing was tested."
        return tried._replace(notes=(*tried.notes, note))
    found, notes = _tested(rows, settings, split)
    tried = fit_untested(rows, settings)
    if split.n_small and not split.are_all_small:
        notes = (*notes, f"{counted(split.n_small, 'group')} of fewer than {ONE_IN} rows gave a fifth together.")
    return tried._replace(
        fitted=tried.fitted._replace(answer=found),
        notes=tuple(dict.fromkeys((*tried.notes, *notes))),
        belongs=_belongs(found, tried.fitted),
    )


def _tested(rows: Rows, settings: Mapping[str, Any], split: Split) -> tuple[Answer, tuple[str, ...]]:
    share = "a fifth of all" if split.are_all_small or split.test.groups is None else "a fifth of each group"
    tested_on = f"{counted(split.test.X.shape[0], 'row')} held out, {share}"
    with _noted() as notes:
        model = fit_rows(rows._replace(table=split.train), settings).model
        found = answer(model, split.train, split.test, tested_on, rows.schema.target)
    return found, _on_rivals(notes)


def _belongs(found: Answer, fitted: Fitted) -> str:
    n_rows = fitted.table.X.shape[0]
    said = (
        f"The numbers belong to a fit to four fifths of the rows; the model is fitted to all {n_rows:,} of them."
    )
    if kind_of_average(found.model) != kind_of_average(fitted.model):
        written = replace(found, model=fitted.model)
        said += f" The fit that was tested is {found.fit_name}; the one to all rows is {written.fit_name}."
    return said


def _on_classes(model: Any, others: FileRows, test: Path) -> list[str]:
    """Return a note on classes that the fit has not seen."""
    known, y = set(getattr(model, "classes_", np.array([])).tolist()), others.y
    new = [] if not known or y is None else sorted(str(name) for name in set(y.tolist()) - known)
    if not new:
        return []
    more = f" and {counted(len(new) - 1, 'other')}" if len(new) > 1 else ""
    return [
        f"{test.name} has rows of the class {new[0]!r}{more}, which the fit has not seen: they count as wrong."
    ]


def _on_rivals(notes: list[str]) -> tuple[str, ...]:
    """Return one note on the fits of a test, which are not kept."""
    others = [note for note in notes if note != _NO_GROUP]
    return tuple(f"In a fit that was only tested: {note}" for note in others[:1])


@contextmanager
def _noted() -> Iterator[list[str]]:
    """Collect warnings as notes, each once."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield notes
    notes += dict.fromkeys(_NO_GROUP if one.category is MissingGroupsWarning else str(one.message) for one in said)
