"""Stores of experiments that never ran: every ending, infinite scores, and text that would like to be code."""

import math
import zlib

import numpy as np

from stoic.studies.paper.results import load_results
from stoic.studies.paper.runs import Outcome, Run, grid_of, settings_of
from stoic.studies.paper.selection import chosen_cells
from stoic.studies.paper.spec import Spec
from stoic.studies.paper.store import Store

HOSTILE = "</script><img src=x onerror=alert(1)>"
SMALL = {
    "alphas": (0.001, 0.1, 10.0),
    "steps": (0.01, 0.1, 1.0, 1000.0),
    "temperatures": (10.0, 1.0),
    "trials": 3,
    "budget": 6_000,
    "evaluations": 12,
    "n_stages": 3,
    "methods": ("rrosc", "rmscg", "asc-pg", "rcivr"),
}
_FINALS = {"rrosc": (0.30, 0.004), "rmscg": (0.34, 0.08), "asc-pg": (0.48, 0.1), "rcivr": (0.38, 0.04)}


def made_results(folder, *, with_trials=True, **settings):
    """Return the results of a small experiment, in a new store, with a run of every ending."""
    spec = Spec(**(SMALL | settings))
    with Store(folder) as store:
        for name, value in facts(spec).items():
            store.set_fact(name, value)
        for run in grid_of(spec):
            store.add(run, cell(run, spec))
        for run in trials_of(spec, store) if with_trials else ():
            store.add(run, trial(run, spec))
    return load_results(folder)


def facts(spec):
    """Return what the runner notes, with groups whose names are hostile."""
    return {
        "spec": spec.model_dump(mode="json"),
        "command": "stoic reproduce --out 'a folder' --trials 3",
        "versions": {"python": "3.11.4", "stoic": "0.1.0", "numpy": "2.4.6"},
        "machine": {"processor": "A <fast> & quiet one", "cores": 2, "load": 0.5, "system": "Linux"},
        "data": {
            "training rows": 16087,
            "test rows": 3308,
            "columns": 150360,
            "entries per row": 1241.5,
            "labels": {"mean": -3.9, "deviation": 0.6},
            "groups of the data": {HOSTILE: 12000, "line\u2028end & more": 4087},
            "groups of the problem": [*spec.noise],
        },
    }


def trials_of(spec, store):
    """Return the trials at the cells that either way of selection chose."""
    chosen = [chosen_cells(store.runs("grid"), score) for score in ("plain", "robust")]
    return [
        Run("trial", setting, place.alpha, place.step, repetition)
        for setting in settings_of(spec)
        for place in {cells[setting] for cells in chosen if setting in cells}
        for repetition in range(spec.trials)
    ]


def cell(run, spec):
    """Return how a cell went: well, badly for large steps, and one of them not at all."""
    rng = _rng(run)
    step = run.step or 0.1
    size = abs(math.log10(step) + 1.0) + 0.5 * abs(math.log10(run.alpha) + 1.0)
    if run.setting.method == "rrosc" and run.step == max(spec.steps) and run.alpha == max(spec.alphas):
        return Outcome("failed", f"ValueError: {HOSTILE} | a [link](javascript:alert(1))\n\u2029and more")
    if math.log10(step) + 0.3 * math.log10(run.alpha) > 2.5:
        return Outcome(
            "diverged", "The iterates became infinite or NaN.", 800, 0.1, points=[_cell_point(800, 1e250)]
        )
    if math.log10(step) > 1.0:
        return Outcome("hopeless", "The callback asked to stop.", 1500, 0.2, points=[_cell_point(1500, 4e5)])
    error = _FINALS.get(run.setting.method, (0.4, 0.1))[0] * (1.0 + 0.3 * size**2 + 0.05 * rng.random())
    robust = error * (0.5 if run.setting.method == "rmscg" and run.alpha < 0.1 else 0.9)  # another cell is chosen
    last = _cell_point(spec.budget, math.inf if size > 7.5 else error, robust)
    return Outcome("finished", "Every step of the plan was taken.", spec.budget, 0.5, 0.1, 0.2, [last])


def _cell_point(samples, error, robust=1e5):
    counts = {"samples": samples, "seconds": 0.1, "stage": 0, "truncated_y": 0.0, "truncated_z": 0.0}
    return counts | {"plain": error, "robust": robust}


def trial(run, spec):
    """Return how a trial went: an ASC-PG with L2 diverges at first, an RCIVR with L1 fails at last."""
    method, rng = run.setting.method, _rng(run)
    if method == "rcivr" and run.setting.regularizer == "l1" and run.repetition == spec.trials - 1 > 0:
        return Outcome("failed", f"MemoryError: {HOSTILE}")
    points = list(_trial_points(run, spec, rng))
    if method == "asc-pg" and run.setting.regularizer == "l2" and run.repetition == 0:
        points = points[: len(points) // 2]
        points[-1] |= {"mse": math.inf, "worst_group": math.nan}
        return Outcome(
            "diverged", "The iterates became infinite or NaN.", points[-1]["samples"], 0.3, points=points
        )
    shares = [np.mean([point[name] for point in points]) for name in ("truncated_y", "truncated_z")]
    return Outcome("finished", "Every step.", spec.budget, 1.0 + rng.random(), *map(float, shares), points)


def _trial_points(run, spec, rng):
    final, deviation = _FINALS.get(run.setting.method, (0.4, 0.1))
    final *= (1.0 + 0.1 * abs(math.log10(run.setting.temperature / 10.0))) * (
        1.2 if run.setting.regularizer == "l1" else 1
    )
    end, pace = final + deviation * rng.standard_normal(), 1.0 + 0.2 * rng.random()
    for place in range(1, spec.evaluations + 1):
        done = place / spec.evaluations
        mse = end + 6.0 * final * math.exp(-7.0 * done) + deviation * 0.4 * rng.standard_normal()
        stage = min(spec.n_stages - 1, int(done * spec.n_stages))
        truncates = run.setting.method == "rrosc"
        yield {
            "samples": int(done * spec.budget),
            "seconds": done * pace,
            "stage": stage,
            "truncated_y": 0.02 * (stage + 1) * truncates,
            "truncated_z": 0.01 * (stage + 1) * truncates,
            "mse": mse,
            "robust": 0.8 * mse,
            "worst_group": 1.6 * mse,
        }


def _rng(run):
    return np.random.default_rng(zlib.crc32(run.key.encode()))
