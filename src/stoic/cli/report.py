"""``stoic report``: tables, figures and the page of an experiment, from its store alone."""

from pathlib import Path

import click

from stoic.cli.terminal import say
from stoic.extras import OF_STUDIES, need
from stoic.storage.outputs import check_output_folder


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
def report(folder: Path) -> None:
    """Make the tables, the figures and report.html of the experiment in DIR anew, from its store alone."""
    need("stoic report", *OF_STUDIES)
    from stoic.studies.outputs import write_outputs  # noqa: PLC0415 - heavy, and --help does without

    check_output_folder(folder)
    say(write_outputs(folder))
    say(f"The report: {(folder / 'report.html').resolve()}")
