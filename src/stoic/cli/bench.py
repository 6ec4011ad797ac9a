"""``stoic bench``: measure the compiled engine against others."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stoic.experiments.targets import TARGETS

if TYPE_CHECKING:
    from stoic.experiments.outcomes import Outcome, Report


def _writable(_ctx: click.Context, _param: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a folder that does not exist before anything is measured."""
    if path is not None and not path.parent.is_dir():
        raise click.BadParameter(f"the folder {str(path.parent)!r} does not exist.")
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
    help="Also write every value, the machine and the versions to this file.",
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

    Figures are ratios or exponents: the median over the repetitions, and from smallest to largest.
    """
    from stoic.experiments.bench import run_bench  # noqa: PLC0415 - imports NumPy, which --help does without
    from stoic.progress import progress_bar  # noqa: PLC0415

    with progress_bar(repetitions * len(set(only) or TARGETS), visible=True) as show:
        report = run_bench(size, repetitions=repetitions, only=only, progress=show)
    click.echo("\n".join(_lines(report)))
    if json_path is not None:
        json_path.write_text(json.dumps(report.as_dict(), indent=2) + "\n", encoding="utf-8")
    if report.failed:
        raise click.ClickException("a figure failed; see above.")


_COLUMNS = "{:<16}{:>8}  {:<18}{:<12}{:<5}{:<8}{}"


def _lines(report: "Report") -> list[str]:
    machine = report.machine
    about = f"{machine['processor']}, {machine['cores']} cores; {report.size}, {report.repetitions} repetitions"
    packages = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    head = _COLUMNS.format("figure", "median", "from, to", "must", "aim", "", "what")
    return [about, packages, "", head, *(_line(report, outcome) for outcome in report.outcomes)]


def _line(report: "Report", outcome: "Outcome") -> str:
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
