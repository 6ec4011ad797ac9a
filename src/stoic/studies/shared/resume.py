"""Studies that are run in a folder and resumed there: what is stored is not run again, and nothing is lost."""

import os
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeAlias, TypedDict, TypeVar, Unpack

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from stoic.errors import SolveFailed
from stoic.studies.shared.database import AnyDatabase, locked
from stoic.studies.shared.settings import StudySettings

Progress: TypeAlias = Callable[[int, int, str], None]
"""A function of the runs done, the runs in all, and a word."""

Task = TypeVar("Task")
Found = TypeVar("Found")

_MOST_CRASHES = 3


class RunOptions(TypedDict, total=False):
    """Options of a study's run; no result depends on them.

    Parameters
    ----------
    jobs : int or None, default 1
        Processes; None stands for as many as there are processors.
    retry_failed : bool, default False
        Run again what failed before.
    progress : function of the runs done, the runs in all and a word, optional
    command : str, optional
        What the report gives as the command that made it.
    """

    jobs: int | None
    retry_failed: bool
    progress: Progress | None
    command: str


@dataclass(frozen=True)
class Session(Generic[AnyDatabase]):
    """A study at work in its folder, which no other process can work in."""

    folder: Path
    store: AnyDatabase
    jobs: int
    retry_failed: bool
    progress: Progress

    def run_missing(
        self,
        part: str,
        total: int,
        missing: Iterable[Task],
        execute: Callable[[Task], Found],
        add: Callable[[Task, Found], None],
        *,
        size: Callable[[Task], int] = lambda _: 1,
    ) -> None:
        """Carry out the tasks that are missing of a part, and keep each result as it comes.

        Parameters
        ----------
        part : str
            The word for it that progress shows.
        total : int
            Its runs, those that are stored and those that are missing.
        missing : iterable of tasks
        execute : function of a task
            One that can be pickled, for more than one process.
        add : function of a task and its result
            It puts the result into the store.
        size : function of a task, optional
            How many runs it has; by default one.

        Raises
        ------
        SolveFailed
            If processes were killed again and again.
        """
        left = dict.fromkeys(missing)
        done = total - sum(map(size, left))
        if total:
            self.progress(done, total, part)

        def attempt() -> None:
            nonlocal done
            for task, found in _results(execute, list(left), self.jobs):
                add(task, found)
                del left[task]
                done += size(task)
                self.progress(done, total, part)

        _until_done(attempt)


@contextmanager
def resumed(
    kind: type[AnyDatabase],
    spec: StudySettings,
    folder: Path,
    *,
    free: Container[str],
    **options: Unpack[RunOptions],
) -> Iterator[Session[AnyDatabase]]:
    """Begin a study in a folder, or go on with the one that is there.

    Parameters
    ----------
    kind : type
        Of the study's store.
    spec : StudySettings
    folder : Path
        Made if it does not exist.
    free : container of str
        Settings that may differ from those of the stored runs, since no single run depends on them.
    **options
        See `RunOptions`.

    Raises
    ------
    InvalidParameter
        If another process is at work in the folder, or it holds another study.
    """
    folder = folder.resolve()  # processes that are used again may be in another one
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder), kind(folder) as store:
        store.claim(spec.model_dump(mode="json"), options.get("command", ""), free=free)
        jobs = options.get("jobs", 1) or int(joblib.cpu_count())
        show = options.get("progress") or (lambda _done, _all, _part: None)
        yield Session(folder, store, jobs, options.get("retry_failed", False), show)


def _results(execute: Callable[[Task], Found], tasks: Iterable[Task], jobs: int) -> Iterator[tuple[Task, Found]]:
    """Yield each task with its result, in the order in which they end; one job is this process."""
    if jobs == 1:
        for task in tasks:
            yield task, execute(task)
        return
    pool = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    yield from pool(joblib.delayed(_with_task)(execute, task, os.getpid()) for task in tasks)


def _until_done(attempt: Callable[[], None]) -> None:
    """Call a function that carries out what is left to do, and again where processes of it were killed."""
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


def _with_task(execute: Callable[[Task], Found], task: Task, parent: int) -> tuple[Task, Found]:
    _end_with_parent(parent)
    return task, execute(task)


@lru_cache(maxsize=1)
def _end_with_parent(parent: int) -> None:
    """Let this process end when its parent is killed; joblib's would wait for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
