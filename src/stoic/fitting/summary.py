"""The page about a fit: one self-contained HTML file with the answer, pictures and tables."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from stoic import __version__
from stoic.fitting.answer import Answer
from stoic.fitting.answer_tables import legend, page_tables, title
from stoic.fitting.files import Fitted
from stoic.fitting.inspection import Section, inspect_rows, model_sections
from stoic.fitting.measuring import measured
from stoic.fitting.pictures import can_draw, of_convergence, of_groups, of_tails, of_tradeoff
from stoic.fitting.plain_text import numbers_of
from stoic.fitting.rivals import FIT
from stoic.fitting.trial import Tried
from stoic.reports.html import Html, element, joined, table, terms
from stoic.reports.svg import theme
from stoic.storage.atomic import replace_file

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_LOOK = """svg { display: block; width: 100%; max-width: 36rem; height: auto; margin-bottom: 1rem; }
main > section:first-child { margin-top: 1rem; }
"""
_MOST_LINES = 30  # of a table


def write_summary(tried: Tried, data: Path, path: Path) -> None:
    """Write the page about a model that was fitted to a file.

    Parameters
    ----------
    tried : Tried
    data : Path
        The file, which the page names.
    path : Path

    Raises
    ------
    OSError
        If the file cannot be written; an old one is left as it was.
    """
    replace_file(path, summary_html(tried, data))


def summary_html(tried: Tried, data: Path) -> str:
    """Return the page as HTML."""
    fitted = tried.fitted
    heading = f"{fitted.schema.target or data.name}: a model for {len(fitted.model.groups_):,} groups"
    if len(fitted.model.groups_) == 1:
        heading = f"{fitted.schema.target or data.name}: a model"
    body = joined(part for part in _parts(tried) if part)
    style = (files("stoic.reports") / "report_files" / "page.css").read_text(encoding="utf-8")
    head = joined(
        [
            Html('<meta charset="utf-8">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
            Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            element("title", heading),
            Html(f"<style>{style}{theme()}{_LOOK}</style>"),
        ]
    )
    foot = element("footer", element("p", f"Made by stoic {__version__} from {data.name}."))
    page = element("body", element("header", element("h1", heading)), element("main", body), foot)
    return f'<!doctype html>\n<html lang="en">\n{element("head", head)}\n{page}\n</html>\n'


def _parts(tried: Tried) -> Iterator[Html]:
    fitted = tried.fitted
    if tried.notes:
        yield element("div", *(element("p", note) for note in tried.notes), class_="notice")
    yield from _answered(fitted.answer, tried.belongs) if fitted.answer is not None else _untested(fitted)
    yield from (_section(part) for part in model_sections(fitted.model, fitted.schema))
    if can_draw() and fitted.model.path_:
        yield element("section", element("h2", "What protection costs"), of_tradeoff(fitted.model))
    if can_draw():
        yield element("section", element("h2", "How the fit went"), of_convergence(fitted.model))
    yield from (_section(part) for part in inspect_rows(fitted.table, fitted.schema))
    if can_draw() and not hasattr(fitted.model, "classes_"):
        yield element("section", element("h2", "Tails of the residuals"), of_tails(fitted.model, fitted.table))


def _answered(found: Answer, belongs: str) -> Iterator[Html]:
    """Yield the verdict, and what it is made from."""
    names = "fit", found.other_name
    yield element("p", found.verdict(), class_="lead")
    yield element("p", f"Tested on {found.tested_on}. {belongs}", class_="note")
    for place, part in enumerate(page_tables(found, _MOST_LINES)):
        shown = of_groups(found.errors[place], found.other, names, title(found, place))
        yield element("section", element("h2", part.title), shown, _shown(part))
    yield terms(dict(legend(found)))


def _untested(fitted: Fitted) -> Iterator[Html]:
    """Yield the errors of the groups on the rows of the fit."""
    for errors in measured(fitted.model, {FIT: fitted.model}, fitted.table)[:1]:
        unit = title(Answer(fitted.model, [errors], "", fitted.schema.target), 0)
        shown = of_groups(errors, FIT, ("", ""), f"{unit} in training")
        said = element("p", "Nothing was tested: these are errors on rows that the model was fitted to.")
        yield element("section", element("h2", f"{unit} in training"), said, shown)


def _section(part: Section) -> Html:
    return element("section", element("h2", part.title), _shown(part))


def _shown(part: Section) -> Html:
    notes = [element("p", note) for note in part.notes]
    if not any(part.head):
        return joined([terms({str(name): value for name, value in part.rows}), *notes])
    rows = part.rows[:_MOST_LINES]
    if len(part.rows) > len(rows):
        notes.insert(0, element("p", f"And {len(part.rows) - len(rows):,} more.", class_="note"))
    return joined([table("", part.head, rows, numbers=numbers_of(part)), *notes])
