"""Run an experiment so that nothing is lost: what is stored is not run again, and the same command goes on."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from stoic.errors import SolveFailed
from stoic.studies.paper.data import Material, noise_of_the_grid, prepare, save
from stoic.studies.paper.results import SELECTIONS
from stoic.studies.paper.runs import Outcome, Run, grid_of, settings_of
from stoic.studies.paper.selection import chosen_cells, stored_grid
from stoic.studies.paper.spec import Spec
from stoic.studies.paper.store import Store
from stoic.studies.paper.trial import execute
from stoic.studies.shared.database import locked
from stoic.studies.shared.pool import Progress, processors, results_of, until_done

_SCRATCH = "scratch"
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
        store.claim(spec.model_dump(mode="json"), command, free=_FREE)
        show = progress or (lambda _done, _all, _what: None)
        runner = _Runner(spec, folder, store, processors(jobs), show)
        try:
            runner.run(list(grid_of(spec)), "grid", retry_failed=retry_failed)
            runner.run(_trials(spec, store), "trials", retry_failed=retry_failed)
        finally:
            shutil.rmtree(folder / _SCRATCH, ignore_errors=True)


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
        self.progress(len(runs) - len(left), len(runs), what)

        def attempt() -> None:
            for run, outcome in self._outcomes(left.values()):
                self.store.add(run, outcome)
                del left[run.key]
                self.progress(len(runs) - len(left), len(runs), what)

        until_done(attempt)

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
        return results_of(partial(execute, spec=self.spec, folder=self.scratch), list(runs), self.jobs)


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
