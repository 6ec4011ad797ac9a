"""``stoic inspect``: a description of a model or of a file of rows."""

from pathlib import Path
from typing import Any

import click

from stoic.cli.options import NAMES
from stoic.cli.terminal import say


@click.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="MODEL|DATA")
@click.option("--target", default=None, help="Of data: the column that is to be predicted.")
@click.option("--group", default=None, help="Of data: the column that names the groups.")
@click.option("--weight", default=None, help="Of data: a column of weights, which is not a feature.")
@click.option("--drop", type=NAMES, default=(), help="Of data: columns to leave out, with commas between them.")
@click.option("--missing", type=click.Choice(["refuse", "impute"]), default="refuse", show_default=True)
def inspect(**given: Any) -> None:
    """Describe a MODEL of `stoic fit`, or the rows of DATA.

    Of a model: settings, groups, weights. Of data: targets, tails, groups, and advice on the loss to use.
    """
    from stoic.fitting.commands import run_inspect  # noqa: PLC0415 - heavy, and --help does without

    for line in run_inspect(**given):
        say(line)
