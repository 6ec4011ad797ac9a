"""Settings of a confidence study: its laws, its methods, and the numbers of runs and samples."""

from typing import Any, Literal, TypeAlias

from pydantic import field_validator, model_validator

from stoic.studies.confidence.laws import UNIT_NOISES, GroupLaw
from stoic.studies.confidence.methods import ALONE, OURS, RIVALS
from stoic.studies.shared.settings import (
    CountField,
    PositiveField,
    SeedField,
    StudySettings,
    at_least_one,
    each_once,
)

Place: TypeAlias = Literal["labels", "features", "both"]

HALF_DECADES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0)
_SEVERAL = ("noises", "places", "methods", "steps")
_MAY_BE_EMPTY = ("rates", "rate_noises", "rate_methods")


class TailsSpec(StudySettings):
    """The settings of ``stoic tails`` that its results depend on.

    Parameters
    ----------
    noises, places : tuples of str
        Which noises, in labels, features or both; Gaussian noise is in both anyway.
    methods : tuple of str
        Ours run as they are; rivals at the best step size of the grid.
    runs, samples : int
        Runs of each method in each setting, and samples of each group in a run.
    rates, rate_runs, rate_noises, rate_methods : tuple of int, int, tuples of str
        For the gap against samples: samples of each group, runs with each, noises of the labels, and methods.
    steps, tune_runs : tuple of float, int
        The grid for rivals, and runs of each step size by which one is chosen.
    deviations : tuple of float
        Of the label noise in each group.
    seed : int
    """

    noises: tuple[str, ...] = ("gaussian", "t4.5", "t2.5", "pareto2.5", "lognormal")
    places: tuple[Place, ...] = ("labels", "features", "both")
    methods: tuple[str, ...] = (*(name for name in OURS if name != ALONE), *RIVALS)
    runs: CountField = 2000
    samples: CountField = 20_000
    rates: tuple[CountField, ...] = (10_000, 20_000, 40_000, 100_000, 200_000, 400_000)
    rate_runs: CountField = 200
    rate_noises: tuple[str, ...] = ("gaussian", "t4.5", "t2.5")
    rate_methods: tuple[str, ...] = ("auto", "rrosc-tracked", "rrosc-growing", ALONE)
    steps: tuple[PositiveField, ...] = HALF_DECADES
    tune_runs: CountField = 50
    deviations: tuple[PositiveField, ...] = GroupLaw.deviations
    seed: SeedField = 0

    _all_different = field_validator(*_SEVERAL, *_MAY_BE_EMPTY)(each_once)
    _not_empty = field_validator(*_SEVERAL)(at_least_one)

    @field_validator("noises", "rate_noises")
    @classmethod
    def _known_noises(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return _among(names, UNIT_NOISES, "noise")

    @field_validator("methods", "rate_methods")
    @classmethod
    def _known_methods(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return _among(names, (*OURS, *RIVALS), "method of this study")

    @field_validator("rate_methods")
    @classmethod
    def _untuned(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name in RIVALS:
                raise ValueError(f"{name!r} needs a step size; the rates are those of {', '.join(OURS)}")
        return names

    @model_validator(mode="after")
    def _a_law(self) -> "TailsSpec":
        GroupLaw(deviations=self.deviations)
        return self


def _among(names: tuple[str, ...], known: Any, what: str) -> tuple[str, ...]:
    for name in names:
        if name not in known:
            raise ValueError(f"{name!r} is not a {what}; there are {', '.join(known)}")
    return names
