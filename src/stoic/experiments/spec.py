"""What an experiment is: its data, its noise, its methods and its grid. Checked once, all errors at a time."""

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from stoic.datasets.noise import NOISES, make_noises
from stoic.errors import InvalidParameter
from stoic.solvers import METHODS

Positive: TypeAlias = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Count: TypeAlias = Annotated[int, Field(ge=1)]
Share: TypeAlias = Annotated[float, Field(gt=0.0, lt=1.0)]

DECADES = tuple(float(f"1e{k}") for k in range(-5, 6))
"""10^−5 … 10^5, the paper's grid for the weight of the regularizer and for the step size."""


PAPER_METHODS = ("rrosc", "rmscg", "asc-pg", "rcivr")
"""The methods that the paper compares."""


class Spec(BaseModel):
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
        Share of the rows that sparse noise hits.
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

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: str = "e2006-like"
    data_dir: str | None = None
    size: Positive = 1.0
    target: str | None = None
    group: str | None = None
    test_share: Share = 0.2
    noise: tuple[str, ...] = tuple(NOISES)
    sparse_share: Share = 0.1
    losses: tuple[Literal["squared", "huber", "absolute"], ...] = ("squared",)
    temperatures: tuple[Positive, ...] = (1000.0,)
    regularizers: tuple[Literal["l1", "l2"], ...] = ("l1", "l2")
    methods: tuple[str, ...] = PAPER_METHODS
    alphas: tuple[Positive, ...] = DECADES
    steps: tuple[Positive, ...] = DECADES
    radius: Positive = 100.0
    batch_size: Count = 4
    n_stages: Count = 4
    budget: Count = 400_000
    trials: Count = 5
    selection: Literal["plain", "robust"] = "plain"
    validation_share: Share = 0.1
    test_labels: Literal["clean", "noisy"] = "clean"
    evaluations: Count = 40
    seed: Annotated[int, Field(ge=0)] = 0

    @field_validator("losses", "temperatures", "regularizers", "methods", "alphas", "steps", "noise")
    @classmethod
    def _each_once(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(set(values)) < len(values):
            raise ValueError("names something twice")
        return values

    @field_validator("losses", "temperatures", "regularizers", "methods", "alphas", "steps")
    @classmethod
    def _at_least_one(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if not values:
            raise ValueError("is empty")
        return values

    @field_validator("methods")
    @classmethod
    def _known_methods(cls, methods: tuple[str, ...]) -> tuple[str, ...]:
        for name in methods:
            if name not in METHODS:
                raise ValueError(f"{name!r} is no method; methods: {', '.join(sorted(METHODS))}")
            if not {"step_size", "steps"} & {field.name for field in fields(cast("Any", METHODS[name]()))}:
                raise ValueError(f"{name!r} has no step size to choose from a grid")
        return methods

    @model_validator(mode="after")
    def _known_noise(self) -> "Spec":
        make_noises(self.noise, share=self.sparse_share)
        return self


def make_spec(settings: Mapping[str, Any], path: Path | None = None) -> Spec:
    """Return a spec from settings, which outrank those of a TOML file.

    Raises
    ------
    InvalidParameter
        With all that is wrong, and where.
    """
    given = {} if path is None else _read(path)
    try:
        return Spec.model_validate(given | dict(settings))
    except ValidationError as errors:
        raise InvalidParameter("; ".join(_in_words(error) for error in errors.errors()) + ".") from None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidParameter(f"{str(path)!r} is not a TOML file: {error}.") from None
    except OSError as error:
        raise InvalidParameter(f"{str(path)!r} cannot be read: {error.strerror or error}.") from None


def _in_words(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "settings"
    if error["type"] == "extra_forbidden":
        return f"{where} is no setting; settings: {', '.join(Spec.model_fields)}"
    what = error["msg"].removeprefix("Value error, ")
    given = repr(error["input"])
    return f"{where}={given if len(given) <= 60 else given[:57] + '…'}: {what[0].lower() + what[1:]}"
