"""Tasks on some processes: results as they come, killed processes started again, and none left behind."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from stoic.errors import SolveFailed

Progress: TypeAlias = Callable[[int, int, str], None]
"""A function of the runs done, the runs in all, and a word."""

Task = TypeVar("Task")
Found = TypeVar("Found")

_MOST_CRASHES = 3


def processors(jobs: int | None) -> int:
    """Return a number of processes; None stands for as many as there are processors."""
    return jobs or int(joblib.cpu_count())


def results_of(work: Callable[[Task], Found], tasks: Iterable[Task], jobs: int) -> Iterator[tuple[Task, Found]]:
    """Yield each task with its result, in the order in which they end.

    Parameters
    ----------
    work : function of a task
        One that can be pickled, for more than one process.
    tasks : iterable
    jobs : int
        Processes; 1: this one.
    """
    if jobs == 1:
        for task in tasks:
            yield task, work(task)
        return
    pool = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    yield from pool(joblib.delayed(_named)(work, task, os.getpid()) for task in tasks)


def until_done(attempt: Callable[[], Any]) -> None:
    """Call a function that carries out what is left to do, and again where processes of it were killed.

    Raises
    ------
    SolveFailed
        If that happened again and again.
    """
    crashes = 0
    while True:
        try:
            attempt()
        except TerminatedWorkerError as error:  # all processes end with the one that was killed
            crashes += 1
            if crashes > _MOST_CRASHES:
                raise SolveFailed(
                    f"processes were killed {crashes} times, perhaps for lack of memory; use fewer --jobs. "
                    f"What was done is kept."
                ) from error
        else:
            return


def _named(work: Callable[[Task], Found], task: Task, parent: int) -> tuple[Task, Found]:
    _end_with(parent)
    return task, work(task)


@lru_cache(maxsize=1)
def _end_with(parent: int) -> None:
    """Let this process end when its parent is killed; joblib's would wait for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
