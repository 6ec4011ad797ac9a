"""The command ``stoic``. A command's module is imported when it is asked for, and imports only click itself."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn, cast

import click

from stoic import __version__
from stoic.cli.terminal import say
from stoic.errors import InvalidParameter, StoicError

COMMANDS = ("fit", "predict", "inspect", "reproduce", "tails", "report", "bench")
DONE, FAILED, MISUSED = 0, 1, 2
INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it


class _Commands(click.Group):
    """A group that finds a command in the module of its name, and reports an error in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        return cast("click.Command", getattr(import_module(f"stoic.cli.{cmd_name}"), cmd_name))

    def main(  # type: ignore[override]  # always ends the process, as click's own does unless told otherwise
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run a command line, and exit with 0 if done, 1 if it failed, 2 if it was misused, 130 by Ctrl-C."""
        try:
            code = super().main(args, prog_name, **(extra | {"standalone_mode": False}))
        except click.UsageError as misuse:
            where = misuse.ctx.command_path if misuse.ctx else "stoic"
            _end(f"{misuse.format_message()} See '{where} --help'.", MISUSED)
        except InvalidParameter as misuse:
            _end(str(misuse), MISUSED)
        except click.ClickException as failure:
            _end(failure.format_message(), FAILED)
        except (StoicError, OSError) as failure:
            _end(str(failure), FAILED)
        except click.Abort:
            _end("interrupted.", INTERRUPTED)
        except Exception as failure:
            if not _comes_of_an_interrupt(failure):
                raise
            _end("interrupted.", INTERRUPTED)
        sys.exit(code if isinstance(code, int) else DONE)


def _comes_of_an_interrupt(failure: BaseException | None) -> bool:
    """Whether Ctrl-C came while a package was imported, which then raises errors of its own."""
    while failure is not None:
        if isinstance(failure, KeyboardInterrupt):
            return True
        failure = failure.__cause__ or failure.__context__
    return False


def _end(message: str, code: int) -> NoReturn:
    say(f"stoic: {' '.join(message.split())}", err=True)
    sys.exit(code)


@click.group(cls=_Commands, no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="stoic")
def main() -> None:
    """Stochastic compositional optimization that stays calm under heavy-tailed noise."""
