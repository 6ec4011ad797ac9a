"""The report of an experiment: one HTML file that needs nothing else, not even a network."""

import base64
import hashlib
from importlib.resources import files
from pathlib import Path
from string import Template

from stoic import __version__
from stoic.errors import MissingDependency
from stoic.experiments import report_notes, report_page
from stoic.experiments.headline import title
from stoic.experiments.markup import Html, element, inert, joined
from stoic.experiments.report_data import Chart, as_json, report_data
from stoic.experiments.results import Results
from stoic.writing import replace_file


def write_report(results: Results, folder: Path, command: str) -> None:
    """Write ``report.html``: headline, charts, tables, data, rules, machine, failures and settings in one file.

    The file holds the script that draws the charts, from the installed plotly; a content security policy keeps it
    from loading anything, and from running any other script.

    Parameters
    ----------
    results : Results
    folder : Path
        One that exists.
    command : str
        The one that draws the report again.

    Raises
    ------
    MissingDependency
        If plotly is not installed.
    OSError
        If the file cannot be written; an old one is left as it was.
    """
    replace_file(folder / "report.html", report_text(results, command))


def report_text(results: Results, command: str) -> str:
    """Return the report as HTML."""
    plotly, drawing, data = _plotly(), _file("charts.js"), report_data(results)
    parts = {
        "title": inert(title(results.spec)),
        "policy": _policy(plotly, drawing),
        "style": _file("page.css"),
        "body": _body(results, data["charts"], command),
        "data": as_json(data),
        "plotly": plotly,
        "drawing": drawing,
    }
    size = sum(len(part.encode()) for part in parts.values()) / 1e6
    foot = (
        f"Made by stoic {__version__}. This file is {size:.1f} MB, {len(plotly) / 1e6:.1f} MB of which is plotly"
    )
    foot += ", the library that draws the charts; it loads nothing from the network."
    return Template(_file("page.html")).substitute(parts, foot=inert(foot))


def _body(results: Results, charts: list[Chart], command: str) -> Html:
    spec = results.spec
    sections = {
        "figures": ("Test error against samples", report_page.figures(results, charts)),
        "summary": ("Summary", report_page.summary(results)),
        "grid": ("Grid of λ_reg and step size", report_page.grid(results, charts)),
        "truncation": ("Truncation by stage", report_page.truncation(results, charts)),
        "variants": ("Temperatures and losses", report_page.variants(results, charts)),
        "data": ("Data and noise", report_notes.data(results)),
        "selection": ("Choice of λ_reg and step size", report_notes.selection(spec)),
        "paper": ("What the paper says, and what was chosen here", report_notes.paper(spec)),
        "machine": ("Seed, versions and machine", report_notes.machine(results)),
        "failures": ("Failed runs", report_notes.failures(results)),
        "configuration": ("Commands and settings", report_notes.configuration(results, command)),
    }
    shown = {name: section for name, section in sections.items() if section[1]}
    links = (element("li", element("a", heading, href=f"#{name}")) for name, (heading, _) in shown.items())
    contents = element("nav", element("ul", *links), aria_label="Sections")
    return joined(
        [
            report_page.headline(results),
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
    try:
        from plotly.offline import get_plotlyjs  # noqa: PLC0415 - optional
    except ImportError:
        raise MissingDependency("the report needs plotly; run pip install plotly.") from None
    # A browser reads every line end as \n before it compares hashes, and </script would end the element.
    script: str = get_plotlyjs()
    return script.replace("\r\n", "\n").replace("\r", "\n").replace("</script", "<\\/script")


def _file(name: str) -> str:
    return (files("stoic.experiments") / "report_files" / name).read_text(encoding="utf-8")
