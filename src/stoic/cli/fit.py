"""``stoic fit``: a model from a file."""

from pathlib import Path
from typing import Any

import click

from stoic.cli.options import NUMBER_OR_AUTO, with_settings
from stoic.cli.reading import reads_tables
from stoic.cli.terminal import say

_FILE = click.Path(dir_okay=False, path_type=Path)
_DATA = click.Path(exists=True, dir_okay=False, path_type=Path)
_OPTIONS = (  # flag, type, help; the defaults and the checks are the estimators'
    ("--loss", str, "huber (default), squared, absolute, quantile; for classes logistic."),
    ("--quantile", float, "The level of --loss quantile (0.5)."),
    ("--epsilon", float, "Huber's threshold, in units of the residuals' scale (1)."),
    ("--penalty", str, "l2 (default), l1, elasticnet, none."),
    ("--alpha", float, "Weight of the penalty; chosen by default."),
    ("--l1-ratio", float, "Share of the L1 term in elasticnet (0.5)."),
    ("--protect", str, "regret (default): groups that the model fails; loss: those with the largest loss."),
    ("--temperature", NUMBER_OR_AUTO, "auto (default), or a number: 0 is the worst group, inf the average."),
    ("--max-cost", float, "By how much --temperature auto may raise the mean error (0.01); inf: by any."),
    ("--method", str, "A method of stoic.minimize; chosen by default."),
    ("--budget", int, "Rows to draw; chosen by default."),
    ("--max-epochs", float, "The same in passes over the rows."),
)


@click.command()
@click.argument("data", type=_DATA)
@reads_tables(missing=("refuse", "drop", "impute"))
@click.option("--groups-file", type=_FILE, default=None, help="The group of each row, one a line of a text file.")
@with_settings(_OPTIONS)
@click.option("--standardize/--no-standardize", default=None, help="Center and scale columns; the default.")
@click.option(
    "--test", type=_DATA, default=None, help="A file to test on; by default a fifth of each group's rows."
)
@click.option("--no-test", is_flag=True, help="Test nothing: one fit in the place of four.")
@click.option("--early-stopping", is_flag=True, help="End at the best worst-group loss on rows held out.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of draws and of rows held out.")
@click.option("--out", type=_FILE, default=Path("model.stoic"), show_default=True, help="The model's file.")
@click.option("--summary", type=_FILE, default=None, help="The page about it; by default beside the model, .html.")
def fit(data: Path, **given: Any) -> None:
    """Fit a linear model that protects the groups to the rows of DATA (CSV, Parquet, Feather or LIBSVM).

    All columns but those with a role are features; text becomes one column for each category, dates are numbers.
    Holds out a fifth of each group's rows, and prints the errors of the groups on these rows, of the fit, of
    simpler ones and of a constant, with a verdict; then fits all rows. Writes that model to --out, one file, and a
    page about it. Nothing is written unless the fit succeeds.
    """
    from stoic.fitting.commands import run_fit  # noqa: PLC0415 - heavy, and --help does without

    for line in run_fit(data, **given):
        say(line)
