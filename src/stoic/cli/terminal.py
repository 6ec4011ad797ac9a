"""What commands print: lines that a terminal shows and does not obey, in an encoding that it has."""

import sys

import click

from stoic.reports.visible import visible


def say(text: object, *, err: bool = False) -> None:
    """Print a line, or several; names in it cannot steer the terminal, nor an encoding end the command."""
    encoding = (sys.stderr if err else sys.stdout).encoding or "utf-8"
    shown = visible(text, kept="\n")
    click.echo(shown.encode(encoding, "backslashreplace").decode(encoding), err=err)


def hand_over(text: str) -> None:
    """Print data for programs, as they are and in UTF-8; only a terminal gets them as `say` has them."""
    if sys.stdout.isatty():
        say(text)
    else:
        click.echo(text.encode("utf-8", "surrogateescape"))
