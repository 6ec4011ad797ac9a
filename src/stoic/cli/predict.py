"""``stoic predict``: predictions of a saved model for the rows of a file."""

from pathlib import Path
from typing import Any

import click

from stoic.cli.options import NAMES
from stoic.cli.terminal import hand_over, say

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("model", type=_FILE)
@click.argument("data", type=_FILE)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help="A .csv or .parquet file; by default standard output, as CSV.",
)
@click.option("--keep", type=NAMES, default=(), help="Columns to copy in front of the predictions, say id,date.")
@click.option(
    "--probabilities/--no-probabilities",
    default=None,
    help="Of each class, beside it; by default for all classes.",
)
@click.option("--new-groups", is_flag=True, help="Predict rows of groups that the model has not seen, too.")
def predict(**given: Any) -> None:
    """Predict the rows of DATA by MODEL, a file of `stoic fit`.

    Columns must be those of the fit, in any order; those of target, group and weight may be there or not. Writes
    one line a row of DATA, in its order.
    """
    from stoic.fitting.commands import run_predict  # noqa: PLC0415 - heavy, and --help does without

    for text in run_predict(**given, note=lambda text: say(f"Note: {text}", err=True)):
        (hand_over if given["out"] is None else say)(text)
