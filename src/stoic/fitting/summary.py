"""The page about a fit: one self-contained HTML file with the group picture and the tables."""

import io
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from stoic import __version__
from stoic.estimators.displays.convergence import ConvergenceDisplay
from stoic.estimators.displays.group_risk import GroupRiskDisplay
from stoic.estimators.displays.tail import TailDisplay
from stoic.extras import INSTALL, not_installed
from stoic.fitting.files import Fitted
from stoic.fitting.inspection import Section, inspect_rows, model_sections
from stoic.reports.figures import new_figure
from stoic.reports.html import Html, element, inert, joined, table, terms
from stoic.storage.atomic import replace_file

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
NO_PICTURES = f"the page has no pictures, which matplotlib draws; {INSTALL} brings it."


def write_summary(fitted: Fitted, data: Path, path: Path, notes: Sequence[str] = ()) -> None:
    """Write the page about a model that was fitted to a file.

    Parameters
    ----------
    fitted : Fitted
    data : Path
        The file, which the page names.
    path : Path
    notes : sequence of str
        Warnings of the fit.

    Raises
    ------
    OSError
        If the file cannot be written; an old one is left as it was.
    """
    replace_file(path, summary_html(fitted, data, notes))


def summary_html(fitted: Fitted, data: Path, notes: Sequence[str] = ()) -> str:
    """Return the page as HTML."""
    title = f"{fitted.schema.target or data.name}: a model for {len(fitted.model.groups_)} groups"
    body = joined(
        [
            element("p", *(f"{note} " for note in notes), class_="notice") if notes else Html(""),
            _drawn(_risks, fitted, "Mean error of each group"),
            *(_section(part.title, _shown(part)) for part in model_sections(fitted.model, fitted.schema)),
            _section("How the fit went", _drawn(_convergence, fitted, "Objective against rows drawn")),
            *(_section(part.title, _shown(part)) for part in inspect_rows(fitted.table, fitted.schema)),
            _tails(fitted),
        ]
    )
    style = (files("stoic.reports") / "report_files" / "page.css").read_text(encoding="utf-8")
    head = joined(
        [
            Html('<meta charset="utf-8">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
            Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            element("title", title),
            Html(f"<style>{style}svg {{ max-width: 100%; height: auto; background: white; }}</style>"),
        ]
    )
    foot = element("footer", element("p", f"Made by stoic {__version__} from {data.name}."))
    page = element("body", element("header", element("h1", title)), element("main", body), foot)
    return f'<!doctype html>\n<html lang="en">\n{element("head", head)}\n{page}\n</html>\n'


def _section(title: str, content: Html) -> Html:
    return element("section", element("h2", title), content) if content else content


def _shown(part: Section) -> Html:
    notes = [element("p", note) for note in part.notes]
    if not any(part.head):
        return joined([terms({str(name): value for name, value in part.rows}), *notes])
    return joined([table("", part.head, part.rows), *notes])


def _risks(fitted: Fitted) -> Any:
    model, rows = fitted.model, fitted.table
    groups = rows.groups if rows.groups is not None else ["all"] * rows.X.shape[0]
    error = "zero-one" if hasattr(model, "classes_") else "absolute"
    figure = new_figure((6.5, 1.2 + 0.3 * len(model.groups_)))
    GroupRiskDisplay.from_estimator(model, rows.X, rows.y, groups=groups, error=error, ax=figure.subplots())
    return figure


def _convergence(fitted: Fitted) -> Any:
    figure = new_figure((6.5, 3.4))
    ConvergenceDisplay.from_estimator(fitted.model, figure.subplots())
    return figure


def _tails(fitted: Fitted) -> Html:
    y: Any = fitted.table.y
    if hasattr(fitted.model, "classes_"):
        return Html("")
    if not_installed("matplotlib"):
        return Html("")
    figure = new_figure((8.5, 3.4))
    residuals = fitted.model.predict(fitted.table.X)
    TailDisplay.from_predictions(y, residuals, groups=fitted.table.groups, axes=figure.subplots(1, 2))
    return _section("Tails of the residuals", _picture(figure, "Hill plot and share of rows beyond a distance"))


def _drawn(draw: Callable[[Fitted], Any], fitted: Fitted, what: str) -> Html:
    """Return a picture of a fit; nothing without matplotlib, which is optional."""
    return Html("") if not_installed("matplotlib") else _picture(draw(fitted), what)


def _picture(figure: Any, what: str) -> Html:
    """Return a figure as SVG in the page, with a name for those who do not see it."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    svg = text[text.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{inert(what)}"', 1)
    return element("figure", Html(svg))
