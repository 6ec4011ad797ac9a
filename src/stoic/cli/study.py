"""What the commands that run an experiment share: options, settings, progress, and how they are interrupted."""

import math
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from stoic.cli.main import INTERRUPTED

Command = TypeVar("Command", bound=Callable[..., Any])


class Many(click.ParamType):  # type: ignore[type-arg]  # generic in some versions
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


NAMES, NUMBERS, COUNTS = Many(str, "names"), Many(float, "numbers"), Many(int, "whole numbers")


def with_options(options: Iterable[tuple[str, Any, str]], *, out: str, quick: str) -> Callable[[Command], Command]:
    """Return a decorator that gives a command its settings (flag, type, help), and what all experiments have.

    Parameters
    ----------
    options : iterable of flag, type and help
        The defaults and the checks are those of the experiment.
    out : str
        The folder for results, unless one is given.
    quick : str
        What the quick version is.
    """

    def decorate(command: Command) -> Command:
        for flag, kind, text in reversed(list(options)):
            command = click.option(flag, type=kind, default=None, help=text)(command)
        for option in reversed(_shared(out, quick)):
            command = option(command)
        return command

    return decorate


def _shared(out: str, quick: str) -> list[Any]:
    return [
        click.option(
            "--out",
            type=click.Path(file_okay=False, path_type=Path),
            default=Path(out),
            show_default=True,
            help="The folder for results; an experiment that was interrupted there goes on.",
        ),
        click.option(
            "--config",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Settings from a TOML file; flags outrank them.",
        ),
        click.option("--quick", is_flag=True, help=quick),
        click.option("--jobs", type=click.IntRange(min=1), default=None, help="Processes (all processors)."),
        click.option("--retry-failed", is_flag=True, help="Run again what failed before."),
    ]


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end a command in one line that says how to go on."""
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    except KeyboardInterrupt:
        click.echo("stoic: interrupted; what was done is kept, and the same command goes on.", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop(_signal: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def show_settings(settings: Mapping[str, Any], out: Path) -> None:
    """Say with which settings an experiment runs."""
    click.echo(f"Settings, kept in {out}:")
    for name, value in settings.items():
        click.echo(f"  {name} = {_short(value)}")


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{part:g}" if isinstance(part, float) else str(part) for part in value) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def command_line() -> str:
    """Return the command that runs."""
    return shlex.join(["stoic", *sys.argv[1:]])


class Bars:
    """One progress bar after another; where there is no terminal, a line for every tenth."""

    def __init__(self) -> None:
        self._stack, self._what = ExitStack(), ""
        self._update: Any = None
        self._start, self._first, self._said = 0.0, 0, 0

    def __enter__(self) -> "Bars":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def show(self, done: int, total: int, what: str) -> None:
        """Show that some of the runs of one kind are done."""
        if what != self._what:
            from stoic.solve.progress import progress_bar  # noqa: PLC0415

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
