"""Stores of confidence studies that never ran: known gaps, runs that diverged, and text that would be code."""

import json
import math
import zlib

import numpy as np

from made_results import HOSTILE
from stoic.studies.confidence.results import load_tails
from stoic.studies.confidence.runs import (
    GapOutcome,
    MethodCell,
    keys_of,
    rate_settings_of,
    settings_of,
    tuning_cells,
)
from stoic.studies.confidence.spec import TailsSpec
from stoic.studies.confidence.store import TailsStore
from stoic.studies.confidence.tuning import chosen_cells

SMALL = {
    "noises": ("gaussian", "t2.5"),
    "places": ("labels", "both"),
    "methods": ("rrosc-tracked", "rrosc", "rmscg", "asc-pg", "rcivr", "scgd", "clipped-sgd", "prox-boost"),
    "runs": 400,
    "tune_runs": 5,
    "steps": (0.01, 0.1, 1.0),
    "rates": (1000, 4000, 16_000),
    "rate_runs": 30,
    "rate_noises": ("gaussian", "t2.5"),
    "rate_methods": ("rrosc-tracked", "rrosc-m1"),
}
SCALES = {"rrosc-tracked": 1.0, "rrosc": 4.0, "rmscg": 2.0}


def made_tails(folder, *, parts=("tuning", "tails", "rates"), **settings):
    """Return the results of a study in a new store: exponential gaps, heavier for ASC-PG, less with more samples.

    In each setting a run of SCGD diverged, and a run of RCIVR failed.
    """
    spec = TailsSpec(**(SMALL | settings))
    with TailsStore(folder) as store:
        store.claim(spec.model_dump(mode="json"), "stoic tails --out 'a folder'", free=())
        for setting in settings_of(spec):
            if "tuning" in parts:
                fill(store, keys_of("tuning", setting, tuning_cells(spec), spec.tune_runs))
            if "tails" in parts:
                cells = chosen_cells(store, spec)[setting].values()
                fill(store, keys_of("tails", setting, cells, spec.runs))
        for setting in rate_settings_of(spec) if "rates" in parts else ():
            fill(store, keys_of("rates", setting, map(MethodCell, spec.rate_methods), spec.rate_runs))
    return load_tails(folder)


def fill(store, keys):
    store.add([(key, made_outcome(key)) for key in keys])


def made_outcome(key):
    """Return how a run went; steps of 0.1 are the best."""
    method, step = key.cell
    rng = np.random.default_rng(zlib.crc32(json.dumps(key).encode()))
    if (key.part, method, key.number) == ("tails", "scgd", 3):
        return GapOutcome(math.inf, "diverged", "The iterates became infinite.")
    if (key.part, method, key.number) == ("tails", "rcivr", 4):
        return GapOutcome(math.inf, "failed", f"ValueError: {HOSTILE}")
    if key.part == "tuning":
        return GapOutcome(1.0 + abs(math.log10(step / 0.1)))
    gap = SCALES.get(method, 3.0) * rng.exponential() / key.setting.samples
    if method == "asc-pg":
        gap *= 1.0 + rng.pareto(1.0)
    if method == "rrosc-m1":
        gap += 0.01
    return GapOutcome(gap, truncated_y=0.25, truncated_z=0.5)
