"""Sections of the paper's chapter that show its findings: the headline, the charts and the summary."""

import math

import numpy as np

from stoic.reports.html import Chart, Html, element, figure_of, joined, menu, switch, table
from stoic.reports.words import label, listed
from stoic.studies.paper.charts import problems
from stoic.studies.paper.headline import against_the_paper, unfinished, what_came_out, what_was_run
from stoic.studies.paper.results import Results
from stoic.studies.paper.runs import Setting
from stoic.studies.paper.spec import Spec
from stoic.studies.paper.summary import SummaryLine, about_groups, selections
from stoic.studies.paper.tables import grouped_lines, summary_row
from stoic.studies.paper.words import SELECTED_BY, problem_name
from stoic.studies.shared.statistics import averages, is_wide

_SUMMARY = (
    "method", "λ_reg", "step", "test MSE, mean ± sd", "median [quartiles]", "worst group", "samples", "seconds",
    "y truncated", "z truncated", "diverged", "remarks",
)  # fmt: skip
_MARKS = {
    "▢": "chosen",
    "×": "diverged, or without a finite error",
    "–": "given up: hopeless after a quarter of the samples",
    "▲": "failed",
}


def headline(results: Results) -> Html:
    """Return what was run, and what came out."""
    missing, verdict = unfinished(results), against_the_paper(results)
    found = [
        element("li", element("strong", f"{regularizer}: "), words)
        for regularizer, words in what_came_out(results)
    ]
    return joined(
        [
            element("p", what_was_run(results.spec), class_="lead"),
            *([element("p", missing, class_="notice", role="status")] if missing else []),
            element("ul", *found, class_="findings"),
            *([element("p", verdict)] if verdict else []),
        ]
    )


def figures(results: Results, charts: list[Chart]) -> Html:
    """Return the charts of the test error, and their switches."""
    curves = [chart for chart in charts if chart["kind"] == "curve"]
    if not curves:
        return element("p", "No trial has ended yet, so there is nothing to draw.")
    note = (
        "Points are averages over trials, bars the spread between them. Where a trial has diverged the mean is "
        "infinite and left out; the median still stands. A click on a name hides a method."
    )
    return joined(
        [
            _switches(results),
            element("div", *(_curve_figure(results.spec, chart) for chart in curves), class_="pair"),
            element("p", note, class_="note"),
        ]
    )


def _switches(results: Results) -> Html:
    spec, scale = results.spec, {"linear": "linear", "log": "log"}
    means = np.concatenate([np.empty(0), *(averages(curve.scores["mse"]).mean for curve in results.main)])
    scores = {"mse": "MSE", "robust": "robust MSE", "worst_group": "worst group"}
    parts = [
        switch("Test error", "score", scores),
        switch("Average", "average", {"mean": "mean ± sd", "median": "median, quartiles"}),
        switch("Against", "x", {"samples": "samples", "seconds": "seconds"}),
        switch("Error axis", "yscale", scale, "log" if is_wide(means) else "linear"),
        switch("Effort axis", "xscale", scale),
        switch("Cells chosen by", "selection", _selection_names(spec)),
    ]
    if len(problems(spec)) > 1:
        parts.append(menu("Problem", "problem", _problem_names(spec)))
    return element("form", *parts, class_="switches", aria_label="What the charts of the test error show")


def _selection_names(spec: Spec) -> dict[str, str]:
    return {name: SELECTED_BY[name] for name in selections(spec)}


def _problem_names(spec: Spec) -> dict[str, str]:
    names = (problem_name(Setting(loss, temperature, "", "")) for loss, temperature in problems(spec))
    return {str(place): name for place, name in enumerate(names)}


def _curve_figure(spec: Spec, chart: Chart) -> Html:
    regularizer = label(chart["id"].removeprefix("curve-"))
    methods = listed([label(name) for name in spec.methods])
    about = f"Line chart: test error against samples with the {regularizer} regularizer, for {methods}."
    return figure_of(f"{regularizer} regularizer", chart, f"{about} The numbers at the end are in the summary.")


def summary(results: Results) -> Html:
    """Return a table for each problem; those that the figures are about in plain sight."""
    spec = results.spec
    parts = []
    for selection in selections(spec):
        tables = [_summary_table(name, lines) for name, lines in grouped_lines(results, selection)]
        n_open = len(spec.regularizers) if selection == spec.selection else 0
        parts += tables[:n_open]
        if tables[n_open:]:
            which = "Other temperatures and losses" if n_open else "All problems"
            name = f"{which}, cells chosen by the {SELECTED_BY[selection]} of the validation errors"
            parts.append(element("details", element("summary", name), *tables[n_open:]))
    note = (
        "Errors at the end of the runs, over trials. The deviation (sd) is that of a sample. The lowest mean is "
        "set off. Seconds are timings, medians over trials; truncated: share of all steps."
    )
    return joined([*parts, element("p", f"{note} {about_groups(results)}", class_="note")])


def _summary_table(name: str, lines: list[SummaryLine]) -> Html:
    means = [line.mean for line in lines]
    best = [means.index(min(means))] if math.isfinite(min(means)) else []
    rows = [summary_row(line) for line in lines]
    keep = [
        place for place in range(len(_SUMMARY)) if place < len(_SUMMARY) - 1 or any(row[place] for row in rows)
    ]
    head = [_SUMMARY[place] for place in keep]
    return table(name, head, [[row[place] for place in keep] for row in rows], best=best)


def grid(results: Results, charts: list[Chart]) -> Html:
    """Return a heat map of the validation error for each regularizer and method."""
    spec, maps = results.spec, {chart["id"]: chart for chart in charts if chart["kind"] == "grid"}
    if not maps:
        return element("p", "No cell of the grid has ended yet.")
    parts = [switch("Validation error", "grid_selection", _selection_names(spec))]
    if len(problems(spec)) > 1:
        parts.append(menu("Problem", "grid_problem", _problem_names(spec)))
    note = (
        "Error on the validation rows at the end of each run of the grid. Colors show by how much it is above the "
        "lowest of all maps, on a log scale from a thousandth of that to ten times it."
    )
    marks = [element("li", _glyph(mark), " ", words) for mark, words in _MARKS.items()]
    bar = element(
        "div", class_="colorbar", role="img", aria_label="Colors: by how much an error is above the lowest"
    )
    return joined(
        [
            element("p", note, class_="note"),
            element("form", *parts, class_="switches", aria_label="What the maps of the grid show"),
            element("div", bar, element("ul", *marks, class_="marks"), class_="key"),
            *(_maps(spec, regularizer, maps) for regularizer in spec.regularizers),
        ]
    )


def _glyph(mark: str) -> Html:
    return element("span", mark, class_="strong" if mark in "▢▲" else "quiet", aria_hidden="true")


def _maps(spec: Spec, regularizer: str, maps: dict[str, Chart]) -> Html:
    figures = []
    for method in spec.methods:
        chart = maps.get(f"grid-{regularizer}-{method}")
        if chart is not None:
            about = f"Heat map: validation error of {label(method)} with {label(regularizer)} over λ_reg and step."
            figures.append(figure_of(label(method), chart, f"{about} The file grid.csv has the numbers."))
    return joined([element("h3", f"{label(regularizer)} regularizer"), element("div", *figures, class_="maps")])


def truncation(results: Results, charts: list[Chart]) -> Html:
    """Return the shares of steps truncated in each stage."""
    found = [chart for chart in charts if chart["kind"] == "truncation"]
    if not found:
        return element("p", "No step was truncated." if results.main else "No trial has ended yet.")
    figures = []
    for chart in found:
        regularizer = label(chart["id"].removeprefix("truncation-"))
        about = f"Bar chart: share of steps in which y and z were truncated, by stage, with {regularizer}."
        figures.append(figure_of(f"{regularizer} regularizer", chart, about))
    note = (
        "Share of the steps in which y, the estimate of the inner values, or z, that of their Jacobian, was "
        "truncated, over all trials; methods that never truncate are left out. The steps between two points of a "
        "curve count for the stage of the later one."
    )
    return joined([element("div", *figures, class_="pair"), element("p", note, class_="note")])


def variants(results: Results, charts: list[Chart]) -> Html:
    """Return the final error against temperature or loss; empty where there is one of each."""
    spec = results.spec
    if len(problems(spec)) == 1:
        return Html()
    found = [chart for chart in charts if chart["kind"] == "variant"]
    if not found:
        return element("p", "No trial with a finite error has ended yet.")
    figures = []
    for chart in found:
        _, regularizer, *loss = chart["id"].split("-")
        heading = f"{label(regularizer)} regularizer" + "".join(f", {name} loss" for name in loss)
        about = f"Line chart: test MSE at the end against the {chart['by']}, by method; {heading}."
        figures.append(figure_of(heading, chart, about))
    note = "Test MSE at the end: mean and standard deviation over trials, each at the cell chosen for its problem."
    return joined([element("div", *figures, class_="pair"), element("p", note, class_="note")])
