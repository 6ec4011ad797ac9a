"""``stoic inspect``: a description of a model or of a file of rows."""

from pathlib import Path
from typing import Any

import click

from stoic.cli.reading import reads_tables
from stoic.cli.terminal import say


@click.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="MODEL|DATA")
@reads_tables(missing=("impute", "drop"))
def inspect(**given: Any) -> None:
    """Describe a MODEL of `stoic fit`, or the rows of DATA.

    Of a model: settings, groups, weights. Of data: missing values, targets, tails and groups; which loss to use.
    """
    from stoic.fitting.commands import run_inspect  # noqa: PLC0415 - heavy, and --help does without

    for line in run_inspect(**given):
        say(line)
