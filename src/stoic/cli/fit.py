"""``stoic fit``: a model from a file."""

from pathlib import Path
from typing import Any

import click

from stoic.cli.options import NAMES, with_settings

_FILE = click.Path(dir_okay=False, path_type=Path)
_OPTIONS = (  # flag, type, help; the defaults and the checks are the estimators'
    ("--loss", str, "huber (default), squared, absolute, quantile; for classes logistic."),
    ("--quantile", float, "The level of --loss quantile (0.5)."),
    ("--epsilon", float, "Huber's threshold, in units of the residuals' scale (1.345)."),
    ("--penalty", str, "l2 (default), l1, elasticnet, none."),
    ("--alpha", float, "Weight of the penalty; chosen by default."),
    ("--l1-ratio", float, "Share of the L1 term in elasticnet (0.5)."),
    ("--protect", str, "loss (default): groups with the largest loss; regret: those that the model fails."),
    ("--temperature", float, "0: the worst group, inf: the average (4)."),
    ("--method", str, "A method of stoic.minimize; chosen by default."),
    ("--budget", int, "Rows to draw; chosen by default."),
    ("--max-epochs", float, "The same in passes over the rows."),
)


@click.command()
@click.argument("data", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--target", default=None, help="The column to predict; LIBSVM files have it by themselves.")
@click.option("--group", default=None, help="The column that names the groups.")
@click.option("--groups-file", type=_FILE, default=None, help="The group of each row, one a line of a text file.")
@click.option("--weight", default=None, help="A column of weights of the rows within their groups.")
@click.option("--drop", type=NAMES, default=(), help="Columns to leave out, with commas between them.")
@click.option(
    "--missing",
    type=click.Choice(["refuse", "impute"]),
    default="refuse",
    show_default=True,
    help="impute fills in medians of numbers and most frequent categories.",
)
@click.option(
    "--classify/--regress",
    "classifies",
    default=None,
    help="By default classify where the target is not a number.",
)
@with_settings(_OPTIONS)
@click.option("--standardize/--no-standardize", default=None, help="Center and scale columns; the default.")
@click.option("--early-stopping", is_flag=True, help="End at the best worst-group loss on rows held out.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of draws and of rows held out.")
@click.option("--out", type=_FILE, default=Path("model.stoic"), show_default=True, help="The model's file.")
@click.option("--summary", type=_FILE, default=None, help="The page about it; by default beside the model, .html.")
def fit(data: Path, **given: Any) -> None:
    """Fit a linear model for the worst-off groups to the rows of DATA (CSV, Parquet or LIBSVM).

    All columns but those with a role are features; text becomes one column for each category. Writes the model to
    --out, one file, and a page about it. Nothing is written unless the fit succeeds.
    """
    from stoic.fitting.commands import run_fit  # noqa: PLC0415 - heavy, and --help does without

    for line in run_fit(data, **given):
        click.echo(line)
