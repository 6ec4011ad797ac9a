"""The runner of the paper's experiment: the grid, then trials at the cells that were chosen."""

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Unpack

from stoic.errors import SolveFailed
from stoic.studies.paper.data import description, noise_of_the_grid, prepare_material, save_material
from stoic.studies.paper.results import SELECTIONS
from stoic.studies.paper.runs import Run, execute, grid_of, settings_of
from stoic.studies.paper.selection import chosen_cells, stored_grid
from stoic.studies.paper.spec import Spec
from stoic.studies.paper.store import Store
from stoic.studies.shared.resume import RunOptions, Session, resumed

_SCRATCH = "scratch"
# What may differ from the stored experiment, since no single run depends on it.
_FREE = {"methods", "regularizers", "losses", "temperatures", "alphas", "steps", "trials", "selection"}


def run_experiment(spec: Spec, folder: Path, **options: Unpack[RunOptions]) -> None:
    """Run what is missing of an experiment, and keep it in the folder.

    Parameters
    ----------
    spec : Spec
    folder : Path
        Made if it does not exist; an experiment that was interrupted there goes on.
    **options
        See `RunOptions`.

    Raises
    ------
    InvalidParameter
        If another process is at work in the folder, or it holds another experiment.
    SolveFailed
        If no cell of any grid ended with a finite error, or processes were killed again and again.
    """
    with resumed(Store, spec, folder, free=_FREE, **options) as session:
        runner = _Runner(spec, session)
        try:
            runner.run("grid", list(grid_of(spec)))
            runner.run("trials", _trials(spec, session.store))
        finally:
            shutil.rmtree(runner.scratch, ignore_errors=True)


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
    """Runs on data that are prepared when the first run needs them."""

    def __init__(self, spec: Spec, session: Session[Store]) -> None:
        self.spec, self.session = spec, session
        self.scratch = session.folder / _SCRATCH
        self.is_prepared = False

    def run(self, part: str, runs: Sequence[Run]) -> None:
        """Carry out those of the runs that are not yet in the store."""
        store = self.session.store
        known = store.known(but_failed=self.session.retry_failed)
        missing = [run for run in runs if run.key not in known]
        if missing and not self.is_prepared:
            self._prepare()
        work = partial(execute, spec=self.spec, folder=self.scratch)
        self.session.run_missing(part, len(runs), missing, work, store.add)

    def _prepare(self) -> None:
        self.session.progress(0, 0, "data")
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()
        material = prepare_material(self.spec)
        save_material(material, self.scratch)
        self.session.store.set_fact("data", description(material, self.spec))
        self.session.store.set_fact("noise", noise_of_the_grid(material, self.spec))
        self.is_prepared = True
