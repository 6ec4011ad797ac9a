"""``stoic reproduce``: the paper's experiment, end to end."""

import math
import shlex
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import click

from stoic.cli.main import INTERRUPTED

QUICK: dict[str, Any] = {
    "size": 0.2,
    "alphas": tuple(float(f"1e{k}") for k in range(-5, 0)),
    "steps": tuple(float(f"1e{k}") for k in range(-4, 4)),
    "budget": 80_000,
}


class _Many(click.ParamType):  # type: ignore[type-arg]  # generic in some versions
    """Values separated by commas, as a tuple; "none" is an empty one."""

    def __init__(self, kind: type, name: str) -> None:
        self.kind, self.name = kind, name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        """Return the values."""
        if isinstance(value, tuple):
            return value
        parts = [] if value.strip().lower() == "none" else [part.strip() for part in value.split(",")]
        try:
            return tuple(self.kind(part) for part in parts)
        except ValueError:
            self.fail(f"{value!r} is not a list of {self.name} with commas between them.", param, ctx)


_NAMES, _NUMBERS = _Many(str, "names"), _Many(float, "numbers")
_OPTIONS = (  # flag, type, help; the defaults and the checks are in `Spec`
    ("--data", str, "e2006-like (default), e2006, or the path of a LIBSVM, CSV or Parquet file."),
    ("--data-dir", str, "Where E2006.train.bz2 and E2006.test.bz2 are, for --data e2006."),
    ("--size", float, "Share of E2006's rows and columns that e2006-like has (1)."),
    ("--target", str, "The column to predict, in a CSV or Parquet file."),
    ("--group", str, "The column that names the groups, for --noise none."),
    ("--test-share", float, "Share of a file's rows to test on (0.2)."),
    ("--noise", _NAMES, "Kinds of label noise (the paper's six), or none."),
    ("--sparse-share", float, "Share of the rows that sparse noise hits (0.1)."),
    ("--losses", _NAMES, "squared (default), huber, absolute; the first makes the figures."),
    ("--temperatures", _NUMBERS, "Of KL group DRO (1000); the first makes the figures."),
    ("--regularizers", _NAMES, "l1,l2 (default)."),
    ("--methods", _NAMES, "rrosc,rmscg,asc-pg,rcivr (default), or any other method of stoic.minimize."),
    ("--alphas", _NUMBERS, "Weights of the regularizer to choose from (1e-5,...,1e5)."),
    ("--steps", _NUMBERS, "Step sizes to choose from (1e-5,...,1e5)."),
    ("--radius", float, "Of RROSC's first ball (100)."),
    ("--batch-size", int, "Samples of each group in a batch (4)."),
    ("--n-stages", int, "Stages of the methods with restarts (4)."),
    ("--budget", int, "Samples of a run (400000)."),
    ("--trials", int, "Trials with fresh noise (5)."),
    ("--selection", str, "plain (default): mean squared validation error; robust: median of means."),
    ("--validation-share", float, "Share of the training rows to choose on (0.1)."),
    ("--test-labels", str, "clean (default) or noisy."),
    ("--evaluations", int, "Points of a curve (40)."),
    ("--seed", int, "Of data, noise and draws (0)."),
)


def _with_options(command: Any) -> Any:
    for flag, kind, text in reversed(_OPTIONS):
        command = click.option(flag, type=kind, default=None, help=text)(command)
    return command


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduced"),
    show_default=True,
    help="The folder for results; an experiment that was interrupted there goes on.",
)
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Settings from a TOML file; flags outrank them.",
)
@click.option("--quick", is_flag=True, help="Smaller data, a smaller grid and budget.")
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Processes (all processors).")
@click.option("--retry-failed", is_flag=True, help="Run again what failed before.")
@_with_options
def reproduce(
    out: Path, config: Path | None, quick: bool, jobs: int | None, retry_failed: bool, **settings: Any
) -> None:
    """Run the paper's experiment: choose by a grid, then compare methods over trials with fresh noise.

    Results go to the folder --out as they come. Ctrl-C and kill lose nothing but the runs at hand: the same
    command goes on. In the end there are tables, figures, and report.html.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        _run(out, config, QUICK | given if quick else given, jobs, retry_failed)
    except KeyboardInterrupt:
        click.echo("stoic: interrupted; what was done is kept, and the same command goes on.", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(out: Path, config: Path | None, given: dict[str, Any], jobs: int | None, retry_failed: bool) -> None:
    from stoic.experiments.outputs import write_outputs  # noqa: PLC0415 - heavy, and --help does without
    from stoic.experiments.runner import run_experiment  # noqa: PLC0415
    from stoic.experiments.spec import make_spec  # noqa: PLC0415

    spec = make_spec(given, config)
    click.echo(f"Settings, kept in {out}:")
    for name, value in spec.model_dump().items():
        click.echo(f"  {name} = {_short(value)}")
    with _Bars() as bars:
        run_experiment(spec, out, jobs=jobs, retry_failed=retry_failed, progress=bars.show, command=_command())
    click.echo(write_outputs(out))
    click.echo(f"The report: {(out / 'report.html').resolve()}")


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{part:g}" if isinstance(part, float) else str(part) for part in value) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _command() -> str:
    return shlex.join(["stoic", *sys.argv[1:]])


def _stop(_signal: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


class _Bars:
    """One progress bar after another; where there is no terminal, a line for every tenth."""

    def __init__(self) -> None:
        self._stack, self._what = ExitStack(), ""
        self._update: Any = None
        self._start, self._first, self._said = 0.0, 0, 0

    def __enter__(self) -> "_Bars":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def show(self, done: int, total: int, what: str) -> None:
        """Show that some of the runs of one kind are done."""
        if what != self._what:
            from stoic.progress import progress_bar  # noqa: PLC0415

            self._stack.close()
            self._update = self._stack.enter_context(progress_bar(max(1, total), visible=True))
            self._what, self._start, self._first, self._said = what, time.monotonic(), done, -1
        self._update(done, what)
        if not sys.stderr.isatty() and 10 * done // max(1, total) > self._said:
            self._said = 10 * done // max(1, total)
            click.echo(self._line(done, total), err=True)

    def _line(self, done: int, total: int) -> str:
        if not total:
            return f"{self._what}: preparing"
        new = done - self._first
        minutes = (time.monotonic() - self._start) / new * (total - done) / 60.0 if new else 0.0
        more = f", about {math.ceil(minutes)} min left" if minutes > 1.0 else ""
        return f"{self._what}: {done} of {total} runs are done{more}"
