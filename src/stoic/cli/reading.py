"""Options that say how a file of rows is to be read; commands share them."""

from collections.abc import Callable, Sequence

import click

from stoic.cli.options import NAMES, Command


def reads_tables(missing: Sequence[str]) -> Callable[[Command], Command]:
    """Return a decorator that gives a command the roles of columns and what is done with odd ones.

    Parameters
    ----------
    missing : sequence of str
        What may be done with missing values, the default first.
    """
    options = (
        click.option("--target", default=None, help="The column to predict; LIBSVM files have it by themselves."),
        click.option("--group", default=None, help="The column that names the groups."),
        click.option("--group-feature", is_flag=True, help="Use the column of groups as a feature, too."),
        click.option("--weight", default=None, help="A column of weights of the rows within their groups."),
        click.option("--drop", type=NAMES, default=(), help="Columns to leave out, with commas between them."),
        click.option(
            "--keep-column",
            type=NAMES,
            default=(),
            help="Columns to use even if constant, or with a text or number of its own in nearly every row.",
        ),
        click.option(
            "--missing",
            type=click.Choice(missing),
            default=missing[0],
            show_default=True,
            help="Missing values: drop such rows, or impute medians of numbers and most frequent categories.",
        ),
        click.option(
            "--classify/--regress",
            "classifies",
            default=None,
            help="By default text, yes and no, and 0 and 1 are classes.",
        ),
        click.option(
            "--decimal", type=click.Choice(["point", "comma"]), default=None, help="Of numbers; the file tells."
        ),
        click.option(
            "--dates",
            type=click.Choice(["day-first", "month-first"]),
            default=None,
            help="Of dates such as 03/04/2024; the file tells if it can.",
        ),
    )

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
