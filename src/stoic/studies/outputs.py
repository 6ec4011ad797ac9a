"""Tables, figures and the report of the studies in a folder, written from their stores alone."""

import shlex
from pathlib import Path

from stoic.errors import InvalidParameter
from stoic.reports.page import Chapter, write_page
from stoic.studies.confidence.chapter import tails_chapter
from stoic.studies.confidence.figures import write_tails_figures
from stoic.studies.confidence.results import load_tails
from stoic.studies.confidence.store import TailsStore
from stoic.studies.confidence.tables import tails_summary, write_tails_tables
from stoic.studies.paper.chapter import chapter_of
from stoic.studies.paper.figures import write_figures
from stoic.studies.paper.headline import against_the_paper, unfinished, what_came_out
from stoic.studies.paper.results import load_results
from stoic.studies.paper.store import Store
from stoic.studies.paper.tables import short_summary, write_tables


def write_outputs(folder: Path) -> str:
    """Write the tables, the figures and the report of the experiments in a folder, and return what came out.

    Parameters
    ----------
    folder : Path
        The one that ``stoic reproduce``, ``stoic tails`` or both kept their results in.

    Returns
    -------
    str
        Summaries as plain text, and what is missing.

    Raises
    ------
    InvalidParameter
        If there is no experiment in the folder.
    MissingDependency
        If matplotlib or plotly is not installed.
    OSError
        If a file cannot be written; an old one is left as it was.
    """
    kinds = {Store.name: _reproduced, TailsStore.name: _tails}
    found = [write for name, write in kinds.items() if (folder / name).is_file()]
    if not found:
        raise InvalidParameter(
            f"{str(folder)!r} has no {' and no '.join(kinds)}; give the --out folder of stoic reproduce or of "
            f"stoic tails."
        )
    command = shlex.join(["stoic", "report", str(folder)])
    chapters, words = zip(*(write(folder, command) for write in found), strict=True)
    write_page(chapters, folder)
    return "\n".join(words)


def _reproduced(folder: Path, command: str) -> tuple[Chapter, str]:
    results = load_results(folder)
    write_tables(results, folder)
    write_figures(results, folder)
    found = (f"{regularizer}: {words}" for regularizer, words in what_came_out(results))
    words = filter(None, [*found, against_the_paper(results), unfinished(results)])
    return chapter_of(results, command), "\n".join([short_summary(results), "", *words])


def _tails(folder: Path, command: str) -> tuple[Chapter, str]:
    results = load_tails(folder)
    write_tails_tables(results, folder)
    write_tails_figures(results, folder)
    return tails_chapter(results, command), tails_summary(results)
