"""Everything that an experiment is shown by, written from its store alone."""

import shlex
from pathlib import Path

from stoic.experiments.figures import write_figures
from stoic.experiments.headline import against_the_paper, unfinished, what_came_out
from stoic.experiments.report import write_report
from stoic.experiments.results import load_results
from stoic.experiments.tables import short_summary, write_tables


def write_outputs(folder: Path) -> str:
    """Write the tables, the figures and the report of the experiment in a folder, and return what came out.

    Parameters
    ----------
    folder : Path
        The one that ``stoic reproduce`` kept its results in.

    Returns
    -------
    str
        The summary as plain text, who is ahead with each regularizer, and what is missing.

    Raises
    ------
    InvalidParameter
        If there is no experiment in the folder.
    MissingDependency
        If pyarrow, matplotlib or plotly is not installed.
    OSError
        If a file cannot be written; an old one is left as it was.
    """
    results = load_results(folder)
    write_tables(results, folder)
    write_figures(results, folder)
    write_report(results, folder, shlex.join(["stoic", "report", str(folder)]))
    found = (f"{regularizer}: {words}" for regularizer, words in what_came_out(results))
    words = filter(None, [*found, against_the_paper(results), unfinished(results)])
    return "\n".join([short_summary(results), "", *words])
