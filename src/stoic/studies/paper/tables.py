"""Tables of an experiment: every point and every cell for programs, a summary for people."""

import io
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from stoic.reports.text_tables import Row, as_csv, in_columns, markdown_table
from stoic.reports.words import counted, label, number, percent, plus_minus
from stoic.storage.atomic import replace_file
from stoic.studies.paper.results import Results
from stoic.studies.paper.runs import Run
from stoic.studies.paper.store import Stored
from stoic.studies.paper.summary import SummaryLine, about_groups, lines_of, selections
from stoic.studies.paper.words import SELECTED_BY, power, problem_name

_POINT = ("samples", "seconds", "stage", "truncated_y", "truncated_z", "mse", "robust", "worst_group")
_RUN = ("loss", "temperature", "regularizer", "method", "alpha", "step")
POINT_COLUMNS = ("selection", *_RUN, "trial", *_POINT, "ending")
CELL_COLUMNS = (*_RUN, "ending", "plain", "robust", "samples", "seconds", "message")
_TYPES = {"temperature": "float64", "alpha": "float64", "step": "float64", "trial": "int64"}
_TYPES |= {name: "int64" if name in {"samples", "stage"} else "float64" for name in _POINT}


def write_tables(results: Results, folder: Path) -> None:
    """Write ``results.csv``, ``results.parquet``, ``grid.csv`` and ``summary.md`` into a folder.

    Only the columns called seconds are timings; everything else is the same for the same seed.
    """
    points = list(point_rows(results))
    replace_file(folder / "results.csv", as_csv(POINT_COLUMNS, points))
    replace_file(folder / "grid.csv", as_csv(CELL_COLUMNS, cell_rows(results)))
    replace_file(folder / "summary.md", summary_text(results))
    replace_file(folder / "results.parquet", _as_parquet(points))


def point_rows(results: Results) -> Iterator[Row]:
    """Yield a row for each point of each trial, by way of selection; see `POINT_COLUMNS`."""
    for selection in selections(results.spec):
        for curve in results.curves[selection]:
            for run, outcome in curve.trials:
                for point in outcome.points:
                    values = (point[name] for name in _POINT)
                    yield (selection, *_names(run), run.repetition, *values, outcome.ending)


def cell_rows(results: Results) -> Iterator[Row]:
    """Yield a row for each cell of the grid that has ended; see `CELL_COLUMNS`."""
    for run, outcome in sorted(results.grid, key=lambda stored: _names(stored.run)):
        last = outcome.points[-1] if outcome.points else {}
        errors = last.get("plain", ""), last.get("robust", "")
        yield (*_names(run), outcome.ending, *errors, outcome.samples, outcome.seconds, outcome.message)


def _names(run: Run) -> Row:
    setting = run.setting
    return setting.loss, setting.temperature, setting.regularizer, setting.method, run.alpha, run.step


def _as_parquet(rows: Sequence[Row]) -> bytes:
    import pyarrow as pa  # noqa: PLC0415 - slow to import
    from pyarrow import parquet  # noqa: PLC0415

    schema = pa.schema([(name, pa.type_for_alias(_TYPES.get(name, "string"))) for name in POINT_COLUMNS])
    columns = [[row[place] for row in rows] for place in range(len(POINT_COLUMNS))]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    buffer = io.BytesIO()
    parquet.write_table(pa.Table.from_arrays(arrays, schema=schema), buffer)
    return buffer.getvalue()


_HEAD = (
    "method", "λ_reg", "step", "test MSE, mean ± sd", "median [quartiles]", "worst group, median", "samples",
    "seconds (timing)", "truncated y", "truncated z", "diverged", "remarks",
)  # fmt: skip


def summary_text(results: Results) -> str:
    """Return the summary as Markdown."""
    spec = results.spec
    parts = [
        "# Summary",
        f"Errors on {spec.test_labels} test labels at the end of {spec.budget:,} samples, over "
        f"{counted(spec.trials, 'trial')} with fresh {'noise' if spec.noise else 'draws'}. The deviation (sd) is "
        f"that of a sample; a trial that diverged early counts as infinite. All but the column of seconds is the "
        f"same for the same seed. {about_groups(results)}".rstrip(),
    ]
    for selection in selections(spec):
        parts.append(f"## Cells chosen by the {SELECTED_BY[selection]} of the squared validation errors")
        for name, lines in grouped_lines(results, selection):
            parts += [f"### {name}", markdown_table(_HEAD, [summary_row(line) for line in lines])]
    parts += ["## Failed runs", *_failures(results)]
    return "\n\n".join(parts) + "\n"


def grouped_lines(results: Results, selection: str) -> Iterator[tuple[str, list[SummaryLine]]]:
    """Yield the lines that are compared with each other, under a heading."""

    def heading(line: SummaryLine) -> str:
        return f"{label(line.setting.regularizer)}, {problem_name(line.setting)}"

    for name, lines in groupby(lines_of(results, selection), heading):
        yield name, list(lines)


def summary_row(line: SummaryLine) -> list[str]:
    """Return a line of the summary in words, one for each column."""
    method, cell, found = label(line.setting.method), line.cell, line.measures
    place = ["–", "–"] if cell is None else [power(cell.alpha), power(cell.step)]
    if found is None:
        return [method, *place, *["–"] * 8, line.remark]
    mse = found.mse
    return [
        method,
        *place,
        plus_minus(line.mean, line.deviation),
        f"{number(float(mse.median))} [{number(float(mse.low))}, {number(float(mse.high))}]",
        number(float(found.worst_group.median)),
        f"{found.samples:,.0f}",
        f"{found.seconds:.3g}",
        percent(found.truncated_y),
        percent(found.truncated_z),
        f"{line.diverged} of {line.ended}",
        line.remark,
    ]


FAILURE_HEAD = ("method", "problem", "runs", "λ_reg × step", "reason")
_SHORT = (
    "method",
    "λ_reg",
    "step",
    "test MSE, mean ± sd",
    "median [quartiles]",
    "seconds (timing)",
    "diverged",
    "remarks",
)


def short_summary(results: Results) -> str:
    """Return the tables of the selection that the figures are about, in columns of plain text."""
    kept = [_HEAD.index(name) for name in _SHORT]
    parts = []
    for name, lines in grouped_lines(results, results.spec.selection):
        rows = [summary_row(line) for line in lines]
        parts += [f"\n{name}", in_columns([_SHORT, *([row[place] for place in kept] for row in rows)])]
    return "\n".join(parts)


def failure_rows(results: Results) -> Iterator[list[str]]:
    """Yield the runs that failed, those alike in one row; see `FAILURE_HEAD`."""

    def what(stored: Stored) -> tuple[str, ...]:
        run = stored.run
        problem = f"{label(run.setting.regularizer)}, {problem_name(run.setting)}"
        return label(run.setting.method), problem, run.phase, stored.outcome.message

    for (method, problem, phase, message), alike in groupby(sorted(results.failed, key=what), what):
        runs = [stored.run for stored in alike]
        places = {f"{power(run.alpha)} × {power(run.step)}": None for run in runs}
        number_of = counted(len(runs), "cell" if phase == "grid" else "trial")
        yield [method, problem, number_of, ", ".join(places), message]


def _failures(results: Results) -> list[str]:
    rows = list(failure_rows(results))
    if not rows:
        return ["None."]
    return [markdown_table(FAILURE_HEAD, rows)]
