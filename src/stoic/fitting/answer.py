"""Whether a model is any good, and for whom: its errors on test rows beside those of simpler fits; a verdict."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stoic.estimators.base import GroupDROModel
from stoic.fitting.amounts import Amounts
from stoic.fitting.measuring import Errors, Means, half_width, measured
from stoic.fitting.rivals import AVERAGE, CONSTANT, EQUAL, FIT, kind_of_average, rivals_of
from stoic.fitting.schemas import FileRows
from stoic.fitting.verdict import Change, Evidence, verdict

NAMES = {AVERAGE: "the average over rows", EQUAL: "equal group weights", CONSTANT: "a constant"}

_ROUNDING = 1e-6  # of a loss: a regret that is none


@dataclass(frozen=True)
class Answer:
    """What was measured of a fit on test rows.

    Parameters
    ----------
    model : estimator
        That was tested.
    errors : sequence of Errors
        One of numbers; of classes the share of wrong ones, and the log loss.
    tested_on : str
        Which rows: "4,000 rows held out".
    target : str or None
        The name of what is predicted.
    """

    model: GroupDROModel
    errors: Sequence[Errors]
    tested_on: str
    target: str | None = None

    @property
    def amounts(self) -> list[Amounts]:
        """How the errors of each measure are written."""
        return [Amounts.like(float(one.whole.means[0, 0]), is_share=one.measure.is_share) for one in self.errors]

    @property
    def other(self) -> str:
        """The rival that the fit is judged beside: the first of the averages that it is not, else the constant."""
        return next(name for name in (AVERAGE, EQUAL, CONSTANT) if name in self.errors[0].rivals)

    @property
    def fit_name(self) -> str:
        """What the fit is called in a sentence."""
        kind = kind_of_average(self.model)
        if kind is not None:
            is_equal = kind == EQUAL and len(self.model.groups_) > 1
            return "the fit with equal group weights" if is_equal else NAMES[AVERAGE]
        return "regret DRO" if self.model.protect == "regret" else "group DRO on the loss"

    @property
    def other_name(self) -> str:
        """What that rival is called in a sentence."""
        return NAMES[self.other]

    def verdict(self) -> str:
        """Return the answer in a sentence."""
        return verdict(*map(self._evidence, range(len(self.errors))))

    def _evidence(self, place: int) -> Evidence:
        first, other = self.errors[place], self.other
        is_average = kind_of_average(self.model) == AVERAGE
        pair = (FIT, other) if is_average else (other, FIT)
        has_groups = other != CONSTANT and len(first.groups.rows) > 1
        return Evidence(
            self.fit_name,
            NAMES[other] if other != CONSTANT else "",
            _changes(first, first.whole, *pair)[0],
            _changes(first, first.groups, *pair) if has_groups else (),
            _changes(first, first.whole, CONSTANT, FIT)[0],
            self.amounts[place],
            first.measure.name,
            is_explained=any(_beats_constant(first, name) for name in (AVERAGE, EQUAL)),
            is_noise=is_average and has_groups and self._has_no_regret() and _differ(first),
            why=self._why() if is_average else "",
            advice=self._advice(),
        )

    def _why(self) -> str:
        """Return why the fit is the average over rows."""
        asked = self.model.temperature
        if not isinstance(asked, str) and math.isinf(asked):
            return f"The fit is {NAMES[AVERAGE]}, as asked"
        if self._has_no_regret():
            return (
                f"No group would do better beyond chance with a model of its own, so the fit is {NAMES[AVERAGE]}"
            )
        return f"The temperature that was chosen is that of {NAMES[AVERAGE]}"

    def _has_no_regret(self) -> bool:
        """Whether no group would do better beyond chance with a model of its own."""
        return bool((self.model.group_regrets_ <= _ROUNDING * np.abs(self.model.group_losses_)).all())

    def _advice(self) -> str:
        if getattr(self.model, "loss", "") in {"squared", "huber"}:
            return "; --loss absolute fits medians, which this error asks for"
        return ""


def answer(
    model: GroupDROModel, train: FileRows, test: FileRows, tested_on: str, target: str | None = None
) -> Answer:
    """Return what a model that was fitted to training rows does on test rows, beside its rivals; see `Answer`."""
    return Answer(model, measured(model, rivals_of(model, train), test), tested_on, target)


def _changes(errors: Errors, parts: Means, before: str, after: str) -> list[Change]:
    """Return the changes from one rival to another in some parts of the rows; one of the two is the fit."""
    one, two = errors.rivals.index(before), errors.rivals.index(after)
    error = parts.difference_errors[one if after == FIT else two]
    columns = parts.names.tolist(), parts.means[one], parts.means[two], error, parts.rows.tolist()
    return [Change(str(name), float(a), float(b), float(e), n) for name, a, b, e, n in zip(*columns, strict=True)]


def _beats_constant(errors: Errors, name: str) -> bool:
    """Whether a rival is better than a constant beyond chance."""
    if name not in errors.rivals:
        return False
    places = [errors.rivals.index(name), errors.rivals.index(CONSTANT)]
    pair = replace(errors, rivals=(FIT, CONSTANT), of_rows=errors.of_rows[places])
    return _changes(pair, pair.whole, CONSTANT, FIT)[0].is_gain()


def _differ(errors: Errors) -> bool:
    """Whether the error of a group under the fit is beyond chance another than that of all rows."""
    groups = errors.groups
    widths = half_width(groups.errors[0], groups.rows, len(groups.rows))
    return bool((np.abs(groups.means[0] - errors.whole.means[0, 0]) > widths).any())
