"""A progress bar on standard error, silent where that is not a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(total: int, *, visible: bool) -> Iterator[Callable[[int, str], None]]:
    """Yield a function that takes the samples drawn so far and a word on where the run is."""
    if not visible:
        yield lambda _samples, _where: None
        return
    from rich.console import Console  # noqa: PLC0415 - only where a bar is asked for
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("stoic", total=total)
        yield lambda samples, where: bar.update(task, completed=samples, description=where)
