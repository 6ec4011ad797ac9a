"""Commands that run a study: its options, its settings on the screen, its progress, and its end by Ctrl-C."""

import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from stoic.cli.bars import Bars
from stoic.cli.main import INTERRUPTED
from stoic.cli.options import with_settings
from stoic.cli.terminal import say
from stoic.extras import OF_STUDIES, need
from stoic.storage.outputs import check_output_folder

if TYPE_CHECKING:
    from stoic.studies.shared.settings import StudySettings


class Study(NamedTuple):
    """The settings of a study, and the function that runs it with them in a folder."""

    settings: "type[StudySettings]"
    run: Callable[..., None]


def study_command(
    options: Iterable[tuple[str, Any, str]], *, folder: str, smaller: Mapping[str, Any], about_quick: str
) -> Callable[[Callable[[], Study]], click.Command]:
    """Return a decorator that makes a command of a function; its name and docstring are those of the command.

    The function is called when the command runs, and imports the study: that takes long, and --help does without.

    Parameters
    ----------
    options : iterable of flag, type and help
        The settings; their defaults and checks are those of the study.
    folder : str
        For results, unless another is given with --out.
    smaller : mapping
        Settings of --quick; flags outrank them.
    about_quick : str
        The help of --quick.
    """

    def decorate(study: Callable[[], Study]) -> click.Command:
        @wraps(study)
        def command(
            out: Path, config: Path | None, quick: bool, jobs: int | None, retry_failed: bool, **settings: Any
        ) -> None:
            given = {name: value for name, value in settings.items() if value is not None}
            need(f"stoic {study.__name__}", *OF_STUDIES)
            with _interruptible():
                _run(study(), out, config, {**smaller, **given} if quick else given, jobs, retry_failed)

        decorated = with_settings(options)(command)
        for option in reversed(_shared(folder, about_quick)):
            decorated = option(decorated)
        return click.command()(decorated)

    return decorate


def _run(
    study: Study, out: Path, config: Path | None, given: dict[str, Any], jobs: int | None, retry_failed: bool
) -> None:
    from stoic.studies.outputs import write_outputs  # noqa: PLC0415 - heavy, and --help does without
    from stoic.studies.shared.settings import checked  # noqa: PLC0415

    spec = checked(study.settings, given, config)
    check_output_folder(out)
    _show_settings(spec.model_dump(), out)
    command = shlex.join(["stoic", *sys.argv[1:]])
    with Bars() as bars:
        study.run(spec, out, jobs=jobs, retry_failed=retry_failed, progress=bars.show, command=command)
    say(write_outputs(out))
    say(f"The report: {(out / 'report.html').resolve()}")


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
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end a command in one line that says how to go on."""
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    except KeyboardInterrupt:
        say("stoic: interrupted; what was done is kept, and the same command goes on.", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop(_signal: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _show_settings(settings: Mapping[str, Any], out: Path) -> None:
    """Say with which settings an experiment runs."""
    say(f"Settings, kept in {out}:")
    for name, value in settings.items():
        say(f"  {name} = {_short(value)}")


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{part:g}" if isinstance(part, float) else str(part) for part in value) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
