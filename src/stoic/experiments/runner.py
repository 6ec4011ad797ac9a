"""Run an experiment so that nothing is lost: what is stored is not run again, and the same command goes on."""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import joblib
import numpy as np
from joblib.externals.loky.process_executor import TerminatedWorkerError

from stoic.errors import InvalidParameter, SolveFailed
from stoic.experiments.material import Material, noise_of_the_grid, prepare, save
from stoic.experiments.results import SELECTIONS
from stoic.experiments.runs import Outcome, Run, grid_of, settings_of
from stoic.experiments.select import chosen_cells, stored_grid
from stoic.experiments.spec import Spec
from stoic.experiments.store import Store, locked
from stoic.experiments.timing import machine, versions
from stoic.experiments.trial import execute

Progress: TypeAlias = Callable[[int, int, str], None]

_SCRATCH = "scratch"
_MOST_CRASHES = 3
# What may differ from the stored experiment, since no single run depends on it.
_FREE = {"methods", "regularizers", "losses", "temperatures", "alphas", "steps", "trials", "selection"}


def run_experiment(
    spec: Spec,
    folder: Path,
    *,
    jobs: int | None = 1,
    retry_failed: bool = False,
    progress: Progress | None = None,
    command: str = "",
) -> None:
    """Run what is missing of an experiment, and keep it in the folder.

    Parameters
    ----------
    spec : Spec
    folder : Path
        Made if it does not exist; an experiment that was interrupted there goes on.
    jobs : int or None, default 1
        Processes; None stands for as many as there are processors. Results do not depend on it.
    retry_failed : bool, default False
        Run again what failed before.
    progress : function of the runs done, the runs in all and a word, optional
    command : str, optional
        What the report gives as the command that made it.

    Raises
    ------
    InvalidParameter
        If another process is at work in the folder, or it holds another experiment.
    SolveFailed
        If no cell of any grid ended with a finite error, or processes were killed again and again.
    """
    folder = folder.resolve()  # processes that are used again may be in another one
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder), Store(folder) as store:
        _claim(store, spec, folder)
        store.set_fact("command", command)
        show = progress or (lambda _done, _all, _what: None)
        runner = _Runner(spec, folder, store, jobs or joblib.cpu_count(), show)
        try:
            runner.run(list(grid_of(spec)), "grid", retry_failed=retry_failed)
            runner.run(_trials(spec, store), "trials", retry_failed=retry_failed)
        finally:
            shutil.rmtree(folder / _SCRATCH, ignore_errors=True)


def _claim(store: Store, spec: Spec, folder: Path) -> None:
    """Keep the spec, or raise if the store holds runs of another experiment."""
    before, now = store.facts().get("spec", {}), spec.model_dump(mode="json")
    changed = [name for name in before if name not in _FREE and before[name] != now.get(name)]
    if changed and store.known():
        was = ", ".join(f"{name}={before[name]!r}" for name in changed)
        raise InvalidParameter(
            f"{str(folder)!r} holds an experiment with {was}; give these settings, or another folder with --out."
        )
    store.set_fact("spec", now)
    store.set_fact("versions", versions())
    store.set_fact("machine", machine())


def _trials(spec: Spec, store: Store) -> list[Run]:
    """Return the trials at the cells that either way of selection chose."""
    grid = stored_grid(store, spec)
    cells = [chosen_cells(grid, score) for score in SELECTIONS]
    if not any(cells):
        raise SolveFailed(
            "no cell of the grid ended with a finite validation error; widen the grid of step sizes."
        )
    runs = {
        Run("trial", setting, cell.alpha, cell.step, repetition): None
        for repetition in range(spec.trials)
        for setting in settings_of(spec)
        for cell in (chosen[setting] for chosen in cells if setting in chosen)
    }
    return list(runs)


class _Runner:
    """Carries out runs on some processes; the data are prepared when the first run needs them."""

    def __init__(self, spec: Spec, folder: Path, store: Store, jobs: int, progress: Progress) -> None:
        self.spec, self.store, self.jobs, self.progress = spec, store, jobs, progress
        self.scratch = folder / _SCRATCH
        self.is_prepared = False

    def run(self, runs: Sequence[Run], what: str, *, retry_failed: bool) -> None:
        """Carry out those of the runs that are not yet in the store."""
        known = self.store.known(but_failed=retry_failed)
        left = {run.key: run for run in runs if run.key not in known}
        if left and not self.is_prepared:
            self._prepare()
        done, crashes = len(runs) - len(left), 0
        self.progress(done, len(runs), what)
        while left:
            try:
                for run, outcome in self._outcomes(left.values()):
                    self.store.add(run, outcome)
                    del left[run.key]
                    done += 1
                    self.progress(done, len(runs), what)
            except TerminatedWorkerError as error:  # all processes end with the one that was killed
                crashes += 1
                if crashes > _MOST_CRASHES:
                    raise SolveFailed(
                        f"processes were killed {crashes} times, perhaps for lack of memory; use fewer --jobs. "
                        f"What was done is kept."
                    ) from error

    def _prepare(self) -> None:
        self.progress(0, 0, "data")
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()
        material = prepare(self.spec)
        save(material, self.scratch)
        self.store.set_fact("data", description(material, self.spec))
        self.store.set_fact("noise", noise_of_the_grid(material, self.spec))
        self.is_prepared = True

    def _outcomes(self, runs: Iterable[Run]) -> Iterator[tuple[Run, Outcome]]:
        runs = list(runs)
        if self.jobs == 1:
            for run in runs:
                yield run, execute(run, self.spec, self.scratch)
            return
        pool = joblib.Parallel(n_jobs=self.jobs, return_as="generator_unordered", batch_size=1)
        yield from pool(joblib.delayed(_named)(run, self.spec, self.scratch, os.getpid()) for run in runs)


def _named(run: Run, spec: Spec, scratch: Path, parent: int) -> tuple[Run, Outcome]:
    _end_with(parent)
    return run, execute(run, spec, scratch)


@lru_cache(maxsize=1)
def _end_with(parent: int) -> None:
    """Let this process end when its parent is killed; joblib's would wait for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def description(material: Material, spec: Spec) -> dict[str, Any]:
    """Return what a reader should know about the data."""
    train, test = material.train, material.test
    stored = int(getattr(train.X, "nnz", train.X.size))
    sizes = np.bincount(train.groups, minlength=len(material.group_names))
    return {
        "training rows": len(train.y),
        "validation rows": len(train.y) - material.n_fit,
        "test rows": len(test.y),
        "columns": int(train.X.shape[1]),
        "entries per row": stored / len(train.y),
        "labels": {"mean": float(train.y.mean()), "deviation": float(train.y.std())},
        "groups of the data": dict(zip(material.group_names, sizes.tolist(), strict=True)),
        "groups of the problem": list(spec.noise) or list(material.group_names),
    }
