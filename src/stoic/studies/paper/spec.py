"""Settings of the paper's experiment: its data, its noise, its methods and its grid."""

from dataclasses import fields
from typing import Any, Literal, cast

from pydantic import field_validator, model_validator

from stoic.datasets.noise import NOISES, make_noises
from stoic.reports.palette import PAPER_METHODS
from stoic.solvers import METHODS
from stoic.studies.shared.methods import UNTUNED
from stoic.studies.shared.settings import (
    CountField,
    PositiveField,
    SeedField,
    ShareField,
    StudySettings,
    at_least_one,
    each_once,
)

DECADES = tuple(float(f"1e{k}") for k in range(-5, 6))
"""10^−5 … 10^5, the paper's grid for the weight of the regularizer and for the step size."""


class Spec(StudySettings):
    """The settings of ``stoic reproduce`` that its results depend on; the defaults are the paper's where it says.

    Parameters
    ----------
    data : str
        "e2006-like", "e2006", or the path of a LIBSVM, CSV or Parquet file.
    size : float
        Of "e2006-like": a share of E2006's rows and columns.
    target, group : str, optional
        Columns of a CSV or Parquet file.
    test_share : float
        Of the rows of a file, at random, that are for testing.
    noise : tuple of str
        Kinds of label noise, each row of the training data gets one; none: the labels as they are.
    sparse_share : float
        ShareField of the rows that sparse noise hits.
    losses, temperatures : tuples
        The first of each makes the figures; the protocol is repeated for the others.
    regularizers, methods : tuples of str
    alphas, steps : tuples of float
        The grid.
    radius, batch_size, n_stages, budget : float, int, int, int
        D, m, K and samples of a run.
    trials : int
        With fresh noise each.
    selection : "plain" or "robust"
        Mean, or median of means, of the squared validation errors.
    validation_share : float
        Of the training rows.
    test_labels : "clean" or "noisy"
    evaluations : int
        Points of a curve.
    seed : int
    """

    data: str = "e2006-like"
    data_dir: str | None = None
    size: PositiveField = 1.0
    target: str | None = None
    group: str | None = None
    test_share: ShareField = 0.2
    noise: tuple[str, ...] = tuple(NOISES)
    sparse_share: ShareField = 0.1
    losses: tuple[Literal["squared", "huber", "absolute"], ...] = ("squared",)
    temperatures: tuple[PositiveField, ...] = (1000.0,)
    regularizers: tuple[Literal["l1", "l2"], ...] = ("l1", "l2")
    methods: tuple[str, ...] = (*PAPER_METHODS, "rrosc-tracked", "auto")
    alphas: tuple[PositiveField, ...] = DECADES
    steps: tuple[PositiveField, ...] = DECADES
    radius: PositiveField = 100.0
    batch_size: CountField = 4
    n_stages: CountField = 4
    budget: CountField = 400_000
    trials: CountField = 5
    selection: Literal["plain", "robust"] = "plain"
    validation_share: ShareField = 0.1
    test_labels: Literal["clean", "noisy"] = "clean"
    evaluations: CountField = 40
    seed: SeedField = 0

    _all_different = field_validator(
        "losses", "temperatures", "regularizers", "methods", "alphas", "steps", "noise"
    )(each_once)
    _not_empty = field_validator("losses", "temperatures", "regularizers", "methods", "alphas", "steps")(
        at_least_one
    )

    @field_validator("methods")
    @classmethod
    def _known_methods(cls, methods: tuple[str, ...]) -> tuple[str, ...]:
        for name in methods:
            if name not in METHODS:
                raise ValueError(f"{name!r} is not a method; methods: {', '.join(sorted(METHODS))}")
            if name != "auto" and not {"step_size", "steps"} & {
                field.name for field in fields(cast("Any", METHODS[name]()))
            }:
                raise ValueError(f"{name!r} has no step size to choose from a grid")
        return methods

    def steps_of(self, method: str) -> tuple[float, ...]:
        """Return the step sizes to choose from; "auto" has none, and takes none of the other settings either."""
        return (UNTUNED,) if method == "auto" else self.steps

    @model_validator(mode="after")
    def _known_noise(self) -> "Spec":
        make_noises(self.noise, share=self.sparse_share)
        return self
