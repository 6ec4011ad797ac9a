"""``stoic bench``: measurements of the compiled engine beside others."""

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stoic.cli.main import INTERRUPTED
from stoic.storage.outputs import check_output
from stoic.studies.bench.targets import TARGETS

if TYPE_CHECKING:
    from stoic.studies.bench.report import MetricOutcome, Report


def _writable(_ctx: click.Context, _param: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a file that cannot be written, before anything is measured."""
    if path is not None:
        check_output(path)
    return path


@click.command()
@click.option(
    "--size",
    type=click.Choice(["small", "full"]),
    default="full",
    show_default=True,
    help="small: seconds, shows that everything runs; full: minutes, on data in the shape of E2006.",
)
@click.option("--repetitions", type=click.IntRange(min=1), default=5, show_default=True, help="Of each figure.")
@click.option(
    "--json",
    "json_path",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    callback=_writable,
    help="Also write every value, the machine and the versions to this file, anew after each figure.",
)
@click.option(
    "--only",
    type=click.Choice(list(TARGETS)),
    multiple=True,
    metavar="NAME",
    help=f"A figure: {', '.join(TARGETS)}. May be repeated.",
)
def bench(size: str, repetitions: int, json_path: Path | None, only: tuple[str, ...]) -> None:
    """Measure the compiled engine against scikit-learn, SciPy and the plain engine.

    Figures are ratios or exponents: the median over the repetitions, and from smallest to largest. Each is
    printed, and written to the file, as soon as it is measured. Ctrl-C ends the benchmark with exit code 130; the
    figures measured until then stay, and the file says "complete": false and which figures are pending.
    """
    output = _Output(json_path)
    try:
        report = _measure(size, repetitions, only, output)
    except KeyboardInterrupt:  # not while measuring, which returns a report: before it, or a second time
        report = None
    if report is None or not report.complete:
        asked_for = len(set(only) or TARGETS)
        click.echo(f"stoic: interrupted after {output.n_shown} of {asked_for} figures.", err=True)
        raise click.exceptions.Exit(INTERRUPTED)
    if output.refusal:
        raise click.ClickException(output.refusal)
    if report.failed:
        raise click.ClickException("a figure failed; see above.")


def _measure(size: str, repetitions: int, only: tuple[str, ...], output: "_Output") -> "Report":
    from stoic.solve.progress import progress_bar  # noqa: PLC0415
    from stoic.studies.bench.measure import run_bench  # noqa: PLC0415 - imports NumPy, which --help does without

    with progress_bar(repetitions * len(set(only) or TARGETS), visible=True) as show:
        report = run_bench(size, repetitions=repetitions, only=only, progress=show, callback=output.update)
    output.update(report)  # Ctrl-C may have come between the file and the line
    return report


class _Output:
    """The table and the file, which follow the report metric by metric."""

    def __init__(self, json_path: Path | None) -> None:
        self.json_path, self.refusal, self.n_shown = json_path, "", 0
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # no "≤" in the encoding of a file costs a metric
        # While rich shows a bar, sys.stdout leads to the lines above it: right for a terminal, wrong for a file.
        self.stream = None if sys.stdout.isatty() else sys.stdout

    def update(self, report: "Report") -> None:
        """Write the file, and print the lines of the metrics that are new."""
        if not report.outcomes:  # a file from an earlier run is worth more
            return
        self._save(report)
        lines = [_line(report, outcome) for outcome in report.outcomes[self.n_shown :]]
        for line in lines if self.n_shown else [*_head(report), *lines]:
            click.echo(line, file=self.stream or sys.stdout)
        self.n_shown = len(report.outcomes)

    def _save(self, report: "Report") -> None:
        """Write the file; if that fails, say so and go on, since the next metric may find room on the disk."""
        if self.json_path is None:
            return
        try:
            report.write(self.json_path)
        except OSError as error:
            refusal = f"{str(self.json_path)!r} could not be written: {error.strerror or error}."
            if refusal != self.refusal and not report.complete:
                click.echo(f"stoic: {refusal}", err=True)
            self.refusal = refusal
        else:
            self.refusal = ""


_COLUMNS = "{:<16}{:>8}  {:<18}{:<12}{:<5}{:<8}{}"


def _head(report: "Report") -> list[str]:
    machine = report.machine
    about = f"{machine['processor']}, {machine['cores']} cores; {report.size}, {report.repetitions} repetitions"
    packages = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    return [about, packages, "", _COLUMNS.format("figure", "median", "from, to", "must", "aim", "", "what")]


def _line(report: "Report", outcome: "MetricOutcome") -> str:
    target, spread = outcome.target, outcome.spread
    if spread is None:
        state = "failed" if outcome.failed else "not available"
        return f"{target.name:<16}{state}: {' '.join(outcome.reason.split())}"
    verdict = {True: "holds", False: "MISSED", None: ""}[report.holds(outcome)]
    median, smallest, largest = (_short(value) for value in spread)
    return _COLUMNS.format(
        target.name, median, f"{smallest} to {largest}", target.must, target.aim, verdict, target.what
    )


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100.0 else f"{value:.2f}"
