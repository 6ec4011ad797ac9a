"""The report: one HTML file of chapters, one a study, that needs nothing else, not even a network."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from stoic import __version__
from stoic.extras import need
from stoic.reports.html import Chart, Html, as_json, element, inert, joined
from stoic.reports.palette import looks_of
from stoic.reports.words import label
from stoic.storage.atomic import replace_file

NAME = "report.html"


class Chapter(NamedTuple):
    """A study in the report: a title, its findings, sections by their ids, charts, and its methods.

    An empty section is left out.
    """

    name: str
    title: str
    headline: Html
    sections: Mapping[str, tuple[str, Html]]
    charts: Sequence[Chart]
    methods: Sequence[str]


def write_page(chapters: Sequence[Chapter], folder: Path) -> None:
    """Write ``report.html``.

    The file holds the script that draws the charts, from the installed plotly; a content security policy keeps it
    from loading anything, and from running any other script.

    Parameters
    ----------
    chapters : sequence of Chapter
        The first gives the page its title.
    folder : Path
        One that exists.

    Raises
    ------
    MissingDependency
        If plotly is not installed.
    OSError
        If the file cannot be written; an old one is left as it was.
    """
    replace_file(folder / NAME, page_text(chapters))


def page_text(chapters: Sequence[Chapter]) -> str:
    """Return chapters as one page."""
    plotly, drawing = _plotly(), _file("charts.js")
    parts = {
        "title": inert(chapters[0].title),
        "policy": _policy(plotly, drawing),
        "style": _file("page.css"),
        "body": _body(chapters),
        "data": as_json(_data(chapters)),
        "plotly": plotly,
        "drawing": drawing,
    }
    size = sum(len(part.encode()) for part in parts.values()) / 1e6
    foot = (
        f"Made by stoic {__version__}. This file is {size:.1f} MB, {len(plotly) / 1e6:.1f} MB of which is plotly"
    )
    foot += ", the library that draws the charts; it loads nothing from the network."
    return Template(_file("page.html")).substitute(parts, foot=inert(foot))


def _data(chapters: Sequence[Chapter]) -> dict[str, Any]:
    """Return all charts, and how methods are drawn: alike in all of them."""
    looks = looks_of(dict.fromkeys(name for chapter in chapters for name in chapter.methods))
    return {
        "methods": {name: {"label": label(name), **look._asdict()} for name, look in looks.items()},
        "charts": [chart for chapter in chapters for chart in chapter.charts],
    }


def _body(chapters: Sequence[Chapter]) -> Html:
    first, *others = chapters
    sections = dict(first.sections)
    for chapter in others:
        sections |= {chapter.name: (chapter.title, chapter.headline), **chapter.sections}
    shown = {name: section for name, section in sections.items() if section[1]}
    links = (element("li", element("a", heading, href=f"#{name}")) for name, (heading, _) in shown.items())
    contents = element("nav", element("ul", *links), aria_label="Sections")
    return joined(
        [
            first.headline,
            contents,
            *(element("section", element("h2", head), part, id=name) for name, (head, part) in shown.items()),
        ]
    )


def _policy(*scripts: str) -> str:
    """Return a policy that allows these scripts and nothing else; plotly sets styles, and draws maps as images."""
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        f"base-uri 'none'; form-action 'none'"
    )


def _plotly() -> str:
    need("the report", "plotly")
    from plotly.offline import get_plotlyjs  # noqa: PLC0415 - optional

    # A browser reads every line end as \n before it compares hashes, and </script would end the element.
    script: str = get_plotlyjs()
    return script.replace("\r\n", "\n").replace("\r", "\n").replace("</script", "<\\/script")


def _file(name: str) -> str:
    return (files("stoic.reports") / "report_files" / name).read_text(encoding="utf-8")
