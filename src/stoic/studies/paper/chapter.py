"""The report of an experiment: headline, charts, tables, data, rules, machine, failures and settings."""

from stoic.reports.page import Chapter
from stoic.studies.paper import notes, overview as report_page
from stoic.studies.paper.charts import charts_of
from stoic.studies.paper.headline import title
from stoic.studies.paper.results import Results
from stoic.studies.shared.notes import configuration, machine


def chapter_of(results: Results, command: str) -> Chapter:
    """Return all that there is to show."""
    spec, charts = results.spec, charts_of(results)
    sections = {
        "figures": ("Test error against samples", report_page.figures(results, charts)),
        "summary": ("Summary", report_page.summary(results)),
        "grid": ("Grid of λ_reg and step size", report_page.grid(results, charts)),
        "truncation": ("Truncation by stage", report_page.truncation(results, charts)),
        "variants": ("Temperatures and losses", report_page.variants(results, charts)),
        "data": ("Data and noise", notes.data(results)),
        "selection": ("Choice of λ_reg and step size", notes.selection(spec)),
        "paper": ("What the paper says, and what was chosen here", notes.paper(spec)),
        "machine": ("Seed, versions and machine", machine(results.facts, spec.seed)),
        "failures": ("Failed runs", notes.failures(results)),
        "configuration": ("Commands and settings", configuration(results.facts, spec, command)),
    }
    return Chapter("reproduced", title(spec), report_page.headline(results), sections, charts, spec.methods)
