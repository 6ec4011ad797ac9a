"""Run a confidence study so that nothing is lost: what is stored is not run again."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from stoic.errors import SolveFailed
from stoic.reports.words import counted
from stoic.studies.confidence.runs import (
    Batch,
    Cell,
    Part,
    Setting,
    batches_of,
    execute,
    keys_of,
    rate_settings_of,
    settings_of,
    tuning_cells,
)
from stoic.studies.confidence.spec import TailsSpec
from stoic.studies.confidence.store import TailsStore
from stoic.studies.confidence.tuning import chosen_cells
from stoic.studies.shared.database import locked
from stoic.studies.shared.pool import Progress, processors, results_of, until_done

_FIXED = {"deviations", "seed"}  # all else is in the name of a run, or chooses among runs


def run_tails(
    spec: TailsSpec,
    folder: Path,
    *,
    jobs: int | None = 1,
    retry_failed: bool = False,
    progress: Progress | None = None,
    command: str = "",
) -> None:
    """Run what is missing of a study, and keep it in the folder.

    Parameters
    ----------
    spec : TailsSpec
    folder : Path
        Made if it does not exist; a study that was interrupted there goes on, with more runs if the spec has more.
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
        If another process is at work in the folder, or it holds a study with another seed or other deviations.
    SolveFailed
        If all runs of a method in some setting failed, or processes were killed again and again.
    """
    folder = folder.resolve()  # processes that are used again may be in another one
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder), TailsStore(folder) as store:
        free = set(TailsSpec.model_fields) - _FIXED
        store.claim(spec.model_dump(mode="json"), command, free=free)
        show = progress or (lambda _done, _all, _what: None)
        study = _Study(spec, store, processors(jobs), show, retry_failed=retry_failed)
        study.run("tuning", dict.fromkeys(settings_of(spec), tuning_cells(spec)), spec.tune_runs)
        chosen = chosen_cells(store, spec)
        study.run("tails", {setting: tuple(cells.values()) for setting, cells in chosen.items()}, spec.runs)
        alone = tuple(Cell(name) for name in spec.rate_methods)
        study.run("rates", dict.fromkeys(rate_settings_of(spec), alone), spec.rate_runs)


class _Study:
    """Carries out parts of a study on some processes."""

    def __init__(
        self, spec: TailsSpec, store: TailsStore, jobs: int, progress: Progress, *, retry_failed: bool
    ) -> None:
        self.spec, self.store, self.jobs, self.progress = spec, store, jobs, progress
        self.retry_failed = retry_failed

    def run(self, part: Part, cells: Mapping[Setting, Sequence[Cell]], count: int) -> None:
        """Carry out those runs of a part that are not yet in the store."""
        total = count * sum(map(len, cells.values()))
        left = dict.fromkeys(
            batch
            for setting, its_cells in cells.items()
            for batch in self._missing(part, setting, its_cells, count)
        )
        done = total - sum(batch.n_runs for batch in left)
        if total:
            self.progress(done, total, part)

        def attempt() -> None:
            nonlocal done
            for batch, outcomes in results_of(partial(execute, spec=self.spec), list(left), self.jobs):
                self.store.add(outcomes)
                del left[batch]
                done += batch.n_runs
                self.progress(done, total, part)

        until_done(attempt)
        for setting, its_cells in cells.items():
            self._check(part, setting, its_cells)

    def _missing(self, part: Part, setting: Setting, cells: Sequence[Cell], count: int) -> Iterator[Batch]:
        known = self.store.known(part, setting, but_failed=self.retry_failed)
        return batches_of(key for key in keys_of(part, setting, cells, count) if key not in known)

    def _check(self, part: Part, setting: Setting, cells: Sequence[Cell]) -> None:
        """Raise if all runs of a method failed; of a few, the results say how many."""
        runs = self.store.runs(part, setting)
        for method in {cell.method: None for cell in cells}:
            outcomes = [stored.outcome for cell in cells if cell.method == method for stored in runs.get(cell, [])]
            if outcomes and all(outcome.ending == "failed" for outcome in outcomes):
                where = f"{setting.name}, {counted(setting.samples, 'sample')} of each group"
                raise SolveFailed(f"every run of {method} failed ({where}): {outcomes[0].message}")
