"""The chapter of the report that shows a confidence study."""

from collections.abc import Iterator

from stoic.reports.html import Chart, Html, element, figure_of, finite, joined, switch, table
from stoic.reports.page import Chapter
from stoic.reports.words import label, listed
from stoic.studies.confidence.results import MethodRuns, Rate, TailsResults
from stoic.studies.confidence.tables import (
    FAILURE_HEAD,
    NOTE,
    Summary,
    failure_rows,
    rate_head,
    rate_lines,
    rival_caption,
    rival_head,
    rival_lines,
)
from stoic.studies.confidence.words import TITLE, dashes_of, short, unfinished, what_was_run
from stoic.studies.shared.notes import configuration_section, machine_section

_GROUP = "tails"


def tails_chapter(results: TailsResults, command: str) -> Chapter:
    """Return all that there is to show of a study."""
    charts = [*_quantile_charts(results), *_rate_charts(results)]
    sections = {
        "tails-quantiles": ("Quantiles of the gap", _quantiles(results, charts)),
        "tails-rates": ("Median gap against samples", _rates(results, charts)),
        "tails-summary": ("Quantiles in numbers", _summary(results)),
        "tails-laws": ("Laws and methods", _laws(results)),
        "tails-failures": ("Runs that failed", _failures(results)),
        "tails-machine": ("Seed, versions and machine", machine_section(results.facts, results.spec.seed)),
        "tails-configuration": (
            "Commands and settings",
            configuration_section(results.facts, results.spec, command),
        ),
    }
    return Chapter("tails", TITLE, _headline(results), sections, charts, results.methods)


def _headline(results: TailsResults) -> Html:
    missing, lines = unfinished(results), rival_lines(results)
    return joined(
        [
            element("p", what_was_run(results), class_="lead"),
            *([element("p", missing, class_="notice", role="status")] if missing else []),
            *([table(rival_caption(results), rival_head(results), lines)] if lines else []),
        ]
    )


def _quantile_charts(results: TailsResults) -> Iterator[Chart]:
    dashes = dashes_of(results.methods)
    for place, (setting, samples) in enumerate(results.settings.items()):
        law = setting.law(results.spec)
        yield {
            "id": f"tails-{place}",
            "kind": "tails",
            "legend": _GROUP,
            "heading": setting.name,
            "start": law.gap(0.0 * law.optimum),
            "lines": [_quantile_line(one, dashes[one.method]) for one in samples],
        }


def _quantile_line(one: MethodRuns, dash: str) -> Chart:
    found = one.quantiles
    return {
        "method": one.method,
        "dash": dash,
        "delta": list(found),
        "value": finite([band.value for band in found.values()]),
        "low": finite([band.low for band in found.values()]),
        "high": finite([band.high for band in found.values()]),
    }


def _rate_charts(results: TailsResults) -> Iterator[Chart]:
    dashes = dashes_of(results.methods)
    for noise in dict.fromkeys(found.noise for found in results.rates):
        lines = [_rate_line(found, dashes[found.method]) for found in results.rates if found.noise == noise]
        yield {"id": f"rates-{noise}", "kind": "rates", "heading": f"{noise} labels", "lines": lines}


def _rate_line(found: Rate, dash: str) -> Chart:
    return {
        "method": found.method,
        "dash": dash,
        "samples": list(found.samples),
        "value": finite([band.value for band in found.medians]),
        "low": finite([band.low for band in found.medians]),
        "high": finite([band.high for band in found.medians]),
        "note": f"slope {short(found.slope.value)}" if found.slope else "",
    }


def _quantiles(results: TailsResults, charts: list[Chart]) -> Html:
    found = [chart for chart in charts if chart["kind"] == "tails"]
    if not found:
        return element("p", "No run has ended yet, so there is nothing to draw.")
    methods = listed([label(name) for name in results.spec.methods])
    figures = [
        figure_of(
            chart["heading"],
            chart,
            f"Line chart: quantiles of the gap against δ under {chart['heading']} noise, for {methods}. The "
            f"numbers are in the tables below.",
        )
        for chart in found
    ]
    note = (
        "The (1 − δ)-quantile of F(w) − F* over the runs, with 95 % bands: a run ends below it with probability "
        "1 − δ. A line that is straight here grows like a power of 1/δ; one that flattens, more slowly. Gaps "
        "above three times that of the start are off the axis. A click on a name hides a method in all charts."
    )
    scales = switch("Show", "tails_scale", {"gap": "gap", "ratio": "gap over its median"})
    return joined(
        [
            element("form", scales, class_="switches", aria_label="What the charts of quantiles show"),
            element("div", class_="legend", data_for=_GROUP),
            element("div", *figures, class_="panels"),
            element("p", note, class_="note"),
        ]
    )


def _rates(results: TailsResults, charts: list[Chart]) -> Html:
    found = [chart for chart in charts if chart["kind"] == "rates"]
    if not found:
        return Html()
    figures = [
        figure_of(
            chart["heading"],
            chart,
            f"Line chart: median gap against samples of each group, {chart['heading']}. The numbers are below.",
        )
        for chart in found
    ]
    return joined(
        [
            element("div", *figures, class_="panels"),
            table("Medians, and slopes on log scales", rate_head(results), rate_lines(results)),
        ]
    )


def _summary(results: TailsResults) -> Html:
    parts = []
    for setting in results.settings:
        summary = Summary(results, setting)
        best = [place for place, one in enumerate(summary.samples) if one.method == results.baseline_method]
        parts.append(table(setting.name, summary.head, summary.rows(), best=best))
    return joined([*parts, element("p", f"{NOTE} {label(results.baseline_method)} is set off.", class_="note")])


def _laws(results: TailsResults) -> Html:
    spec = results.spec
    deviations, steps = (listed([f"{value:g}" for value in values]) for values in (spec.deviations, spec.steps))
    texts = (
        f"In group i a row has independent features of variance 1 and the label xᵀw_i + s_i ε, with ε of variance "
        f"1 and s = {deviations}; so its risk is |w − w_i|² + s_i² whatever the noise. The w_i are placed such "
        f"that the optimum of the log-sum-exp of the risks is known, and the gap is exact. Every run draws fresh "
        f"rows, each of which is used once; all methods of a run see the same rows. What a pilot draws counts.",
        f"Rivals had, in each setting, that of the step sizes {steps} with the lowest 0.9-quantile of the gap "
        f"over {spec.tune_runs} runs of their own, which is kinder to their tails than the lowest median. "
        f"Everything else was chosen in each run as in stoic.minimize.",
        "t4.5 and t2.5 are Student's t with as many degrees of freedom, pareto2.5 is Pareto with tail 2.5, "
        "lognormal is exp of a normal; all are centered and scaled to variance 1. Under t2.5 and pareto2.5 the "
        "squared loss has infinite variance, which theorems exclude; with such features, so has its gradient.",
    )
    return joined([element("p", text) for text in texts])


def _failures(results: TailsResults) -> Html:
    return table("Runs that failed", FAILURE_HEAD, failure_rows(results)) if results.failures else Html()
