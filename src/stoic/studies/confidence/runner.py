"""The runner of a confidence study: step sizes for rivals, then the runs of quantiles and of rates."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Unpack

from stoic.errors import SolveFailed
from stoic.reports.words import counted
from stoic.studies.confidence.runs import (
    LawSetting,
    MethodCell,
    Part,
    RunBatch,
    batches_of,
    execute,
    keys_of,
    rate_settings_of,
    settings_of,
    tuning_cells,
)
from stoic.studies.confidence.spec import TailsSpec
from stoic.studies.confidence.store import RunsByCell, TailsStore
from stoic.studies.confidence.tuning import chosen_cells
from stoic.studies.shared.resume import RunOptions, Session, resumed

_FIXED = {"deviations", "seed"}  # all else is in the name of a run, or chooses among runs


def run_tails(spec: TailsSpec, folder: Path, **options: Unpack[RunOptions]) -> None:
    """Run what is missing of a study, and keep it in the folder.

    Parameters
    ----------
    spec : TailsSpec
    folder : Path
        Made if it does not exist; a study that was interrupted there goes on, with more runs if the spec has more.
    **options
        See `RunOptions`.

    Raises
    ------
    InvalidParameter
        If another process is at work in the folder, or it holds a study with another seed or other deviations.
    SolveFailed
        If all runs of a method in some setting failed, or processes were killed again and again.
    """
    free = set(TailsSpec.model_fields) - _FIXED
    with resumed(TailsStore, spec, folder, free=free, **options) as session:
        parts = _Parts(spec, session)
        parts.run("tuning", dict.fromkeys(settings_of(spec), tuning_cells(spec)), spec.tune_runs)
        chosen = chosen_cells(session.store, spec)
        parts.run("tails", {setting: tuple(cells.values()) for setting, cells in chosen.items()}, spec.runs)
        alone = tuple(MethodCell(name) for name in spec.rate_methods)
        parts.run("rates", dict.fromkeys(rate_settings_of(spec), alone), spec.rate_runs)


class _Parts:
    """The parts of a study, each in batches of runs."""

    def __init__(self, spec: TailsSpec, session: Session[TailsStore]) -> None:
        self.spec, self.session = spec, session

    def run(self, part: Part, cells: Mapping[LawSetting, Sequence[MethodCell]], count: int) -> None:
        """Carry out those runs of a part that are not yet in the store."""
        store = self.session.store
        self.session.run_missing(
            part,
            count * sum(map(len, cells.values())),
            [batch for setting in cells for batch in self._missing(part, setting, cells[setting], count)],
            partial(execute, spec=self.spec),
            lambda _batch, outcomes: store.add(outcomes),
            size=lambda batch: batch.n_runs,
        )
        for setting, its_cells in cells.items():
            _check(store.runs(part, setting), setting, its_cells)

    def _missing(
        self, part: Part, setting: LawSetting, cells: Sequence[MethodCell], count: int
    ) -> Iterator[RunBatch]:
        known = self.session.store.known(part, setting, but_failed=self.session.retry_failed)
        return batches_of(key for key in keys_of(part, setting, cells, count) if key not in known)


def _check(runs: RunsByCell, setting: LawSetting, cells: Sequence[MethodCell]) -> None:
    """Raise if all runs of a method failed; of a few, the results say how many."""
    for method in {cell.method: None for cell in cells}:
        outcomes = [stored.outcome for cell in cells if cell.method == method for stored in runs.get(cell, [])]
        if outcomes and all(outcome.ending == "failed" for outcome in outcomes):
            where = f"{setting.name}, {counted(setting.samples, 'sample')} of each group"
            raise SolveFailed(f"every run of {method} failed ({where}): {outcomes[0].message}")
