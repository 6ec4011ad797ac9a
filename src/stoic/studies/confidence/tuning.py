"""Step sizes of rivals, chosen by the 0.9-quantile of their gaps in runs for that purpose."""

from collections.abc import Sequence

from stoic.studies.confidence.methods import RIVALS
from stoic.studies.confidence.quantiles import quantile
from stoic.studies.confidence.runs import LawSetting, MethodCell, settings_of, tuning_cells
from stoic.studies.confidence.spec import TailsSpec
from stoic.studies.confidence.store import RunsByCell, TailsStore

DELTA = 0.1


def chosen_cells(store: TailsStore, spec: TailsSpec) -> dict[LawSetting, dict[str, MethodCell]]:
    """Return each method's cell in each setting; a rival of which runs are missing has none."""
    return {setting: _of_setting(store.runs("tuning", setting), spec) for setting in settings_of(spec)}


def _of_setting(runs: RunsByCell, spec: TailsSpec) -> dict[str, MethodCell]:
    ranks: dict[str, dict[MethodCell, tuple[float, float, float]]] = {}
    for cell in tuning_cells(spec):
        gaps = [stored.outcome.gap for stored in runs.get(cell, []) if stored.number < spec.tune_runs]
        if len(gaps) == spec.tune_runs:
            ranks.setdefault(cell.method, {})[cell] = rank(gaps, cell.step)
    whole = {name: found for name, found in ranks.items() if len(found) == len(spec.steps)}
    chosen = {name: min(found, key=found.__getitem__) for name, found in whole.items()}
    untuned = {name: MethodCell(name) for name in spec.methods if name not in RIVALS}
    cells = untuned | chosen
    return {name: cells[name] for name in spec.methods if name in cells}


def rank(gaps: Sequence[float], step: float) -> tuple[float, float, float]:
    """Return the 0.9-quantile, then the median, then the step size: the smaller the better.

    Examples
    --------
    >>> rank([3.0, 1.0, 2.0], 0.1)
    (3.0, 2.0, 0.1)
    """
    return quantile(gaps, DELTA), quantile(gaps, 0.5), step
