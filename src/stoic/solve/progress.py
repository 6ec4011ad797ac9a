"""A progress bar on standard error, silent where that is not a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def progress_bar(total: int, *, visible: bool) -> Iterator[Callable[[int, str], None]]:
    """Yield a function that takes the samples drawn so far and a word on where the run is."""
    console = _terminal() if visible else None
    if console is None:
        yield lambda _samples, _where: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("stoic", total=total)
        yield lambda samples, where: bar.update(task, completed=samples, description=where)


def _terminal() -> "Console | None":
    """Return standard error if it is a terminal: elsewhere rich 13 writes a blank line even if its bar is off."""
    from rich.console import Console  # noqa: PLC0415 - only where a bar is asked for

    console = Console(stderr=True)
    return console if console.is_terminal else None
