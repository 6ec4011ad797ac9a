"""One sentence on a fit from what was measured on test rows: whom it serves better, and at what price."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from stoic.fitting.amounts import Amounts
from stoic.fitting.measuring import half_width

_FEW_ROWS = "the groups have too few test rows to be compared"
_SMALL = 0.005  # of an error: a difference below is not worth a choice


class _Verbs(NamedTuple):
    """What is done to groups, or would be."""

    takes: str
    costs: str
    gains: str
    changes: str


_DOES = _Verbs("takes", "costs", "gains", "changes")
_WOULD = _Verbs("take", "cost", "gain", "change")


class Change(NamedTuple):
    """What a mean error was and what it becomes, with the standard error of the difference row by row."""

    name: str
    before: float
    after: float
    error: float
    rows: int

    @property
    def difference(self) -> float:
        """How much the error grows."""
        return self.after - self.before

    def is_gain(self, looks: int = 1) -> bool:
        """Whether the error is lower beyond chance, where `looks` of them are looked at."""
        return self.rows > 1 and self.difference < -float(half_width(self.error, self.rows, looks))

    def is_loss(self, looks: int = 1) -> bool:
        """Whether the error is higher beyond chance."""
        return self._replace(before=self.after, after=self.before).is_gain(looks)

    @property
    def is_small(self) -> bool:
        """Whether the difference is below half a percent of the error."""
        return abs(self.difference) < _SMALL * abs(self.before)


@dataclass(frozen=True)
class Evidence:
    """What was measured on the test rows.

    Parameters
    ----------
    fit, other : str
        What is judged, "regret DRO", and what it is compared with, "the average over rows"; "" where there is one
        group.
    whole : Change
        From the other one to the fit, over all test rows.
    groups : sequence of Change
        The same for each group.
    constant : Change
        From a constant to the fit, over all rows.
    amounts : Amounts
    measure : str
    is_explained : bool
        Whether one of the simpler fits is better than a constant beyond chance.
    is_noise : bool
        Whether the errors of the groups differ beyond chance, but none would do better with a model of its own.
    why : str
        Where the fit is itself the average over rows: why it is; `other` is what could be had in its place.
    advice : str
        What to do where the fit is worse than a constant.
    """

    fit: str
    other: str
    whole: Change
    groups: Sequence[Change]
    constant: Change
    amounts: Amounts
    measure: str
    is_explained: bool = False
    is_noise: bool = False
    why: str = ""
    advice: str = ""

    @cached_property
    def worst(self) -> Change:
        """The group with the largest error before."""
        return max(self.groups, key=lambda one: one.before)

    @cached_property
    def gains(self) -> list[Change]:
        """The groups that gain beyond chance; the worst one is looked at by itself, as all ask for it."""
        return [one for one in self.groups if one.is_gain(1 if one is self.worst else len(self.groups))]

    @cached_property
    def losses(self) -> list[Change]:
        """The groups that lose beyond chance."""
        return [one for one in self.groups if one.is_loss(1 if one is self.worst else len(self.groups))]

    @property
    def changed(self) -> list[Change]:
        """What changes beyond chance: of the mean and the groups."""
        whole = [self.whole] if self.whole.is_gain() or self.whole.is_loss() else []
        return [*whole, *self.gains, *self.losses]

    @property
    def is_all_small(self) -> bool:
        """Whether all that changes beyond chance is hardly a change."""
        return all(one.is_small for one in self.changed)


def verdict(first: Evidence, second: Evidence | None = None) -> str:
    """Return the sentence.

    What chance explains counts as no difference: it is beyond the 95 % intervals of paired differences, of the
    mean and of the worst group each by itself, of the other groups all together.

    Parameters
    ----------
    first : Evidence
    second : Evidence, optional
        By another measure, which is asked where the first one shows no change.

    Examples
    --------
    >>> mean, worst = Change("all rows", 24.3, 24.5, 0.05, 4000), Change("EV", 29.1, 28.6, 0.1, 800)
    >>> constant = Change("all rows", 30.1, 24.5, 0.2, 4000)
    >>> about = Amounts(1), "mean absolute error"
    >>> print(verdict(Evidence("regret DRO", "the average over rows", mean, [worst], constant, *about)))
    Regret DRO takes the worst group (EV) from 29.1 to 28.6, and costs 0.2 on average.
    """
    if not any(seen.is_explained or seen.constant.is_gain() for seen in (first, second) if seen is not None):
        return _no_better(first)
    if not first.other or not first.groups:
        return _without_groups(first, second)
    if second is not None and not first.changed and second.changed:
        if not first.why:
            return f"No {first.measure} changes beyond chance; by the {second.measure} {_effect(second)}."
        if second.gains and not second.is_all_small:
            return _average(second, f"by the {second.measure} ")
    said = _average(first) if first.why else f"{_effect(first)}."
    return said[:1].upper() + said[1:]


def _no_better(seen: Evidence) -> str:
    change = seen.constant
    told = f"({seen.measure} {_against(seen, change)})"
    if change.is_loss() and not change.is_small:
        return f"Worse than a constant {told}{seen.advice}."
    said = f"No better than a constant {told}"
    if change.difference < 0.0 and not change.is_small:
        said = f"Better than a constant by no more than chance {told}"
    return f"{said}: {change.rows:,} test rows do not show that the columns explain the target."


def _against(seen: Evidence, change: Change) -> str:
    return f"{seen.amounts.error(change.after)} against {seen.amounts.error(change.before)}"


def _without_groups(seen: Evidence, second: Evidence | None) -> str:
    few = _FEW_ROWS if seen.other else "there are no groups to compare"
    if seen.other and not seen.why and seen.whole.is_loss() and not seen.whole.is_small:
        cost = seen.amounts.amount(seen.whole.difference)
        return f"Beside {seen.other}, {seen.fit} costs {cost} on average; {few}."
    if seen.constant.is_gain():
        return f"The fit has a {seen.measure} of {_against(seen, seen.constant)} for a constant; {few}."
    if second is not None and second.constant.is_gain():
        said = "The probabilities are better than those of a constant"
        return f"{said}, but not the {seen.measure} ({_against(seen, seen.constant)})."
    return _no_better(seen)


def _average(seen: Evidence, measured: str = "") -> str:
    said = seen.why
    gains, worst = seen.gains, seen.worst
    if gains and not seen.is_all_small:
        return f"{said}; {measured}{seen.other} would {_helped(seen, _WOULD)}."
    if gains:
        return f"{said}, and {seen.other} would change no error by more than 0.5 %."
    said = f"{said}, and {seen.other} would not serve the worst group ({worst.name}) better beyond chance"
    return (
        f"{said}: the groups seem to differ in noise, not in what explains them." if seen.is_noise else f"{said}."
    )


def _effect(seen: Evidence) -> str:
    gains, losses = seen.gains, seen.losses
    if gains and not seen.is_all_small:
        return f"{seen.fit} {_helped(seen, _DOES)}"
    if seen.changed and seen.is_all_small:
        return f"no difference beyond chance is above 0.5 % of an error: {seen.other} serves as well"
    if seen.whole.is_loss() or losses:
        return _better_without(seen)
    if seen.whole.is_gain():
        gained = seen.amounts.amount(seen.whole.difference)
        return f"beside {seen.other}, {seen.fit} gains {gained} on average; no group changes beyond chance"
    return f"the differences are within chance: {seen.other} serves as well"


def _better_without(seen: Evidence) -> str:
    worst, losses, said = seen.worst, seen.losses, []
    if seen.whole.is_loss():
        said.append(f"costs {seen.amounts.amount(seen.whole.difference)} on average")
    if worst in losses:
        said.append(f"takes the worst group ({worst.name}) {_from_to(seen, worst)}")
    elif losses:
        most = max(losses, key=lambda one: one.difference)
        said.append(f"takes the group {most.name} {_from_to(seen, most)}")
    return f"{seen.other} serves better: {seen.fit} {' and '.join(said)}, and no group gains beyond chance"


def _helped(seen: Evidence, verbs: _Verbs) -> str:
    """Return which group gains, what becomes of the worst one, and the price."""
    takes = verbs.takes
    worst, losses = seen.worst, seen.losses
    if worst in seen.gains:
        said = f"{takes} the worst group ({worst.name}) {_from_to(seen, worst)}"
        after = max(seen.groups, key=lambda one: one.after)
        if after.name != worst.name:
            said += f" (the worst is then {after.name} with {seen.amounts.error(after.after)})"
    else:
        most = min(seen.gains, key=lambda one: one.difference)
        said = f"{takes} {most.name}, the group that it helps most, {_from_to(seen, most)}"
        if worst not in losses:
            said += f", {verbs.changes} the worst group ({worst.name}) by no more than chance"
    if losses:
        most = max(losses, key=lambda one: one.difference)
        name = f"the worst group ({worst.name})" if most is worst else most.name
        said += f", {takes} {name}, which pays most, {_from_to(seen, most)}"
        if worst in losses and most is not worst:
            said += f", {takes} the worst group ({worst.name}) {_from_to(seen, worst)}"
    return f"{said}, {_price(seen, verbs)}"


def _price(seen: Evidence, verbs: _Verbs) -> str:
    size = seen.amounts.amount(seen.whole.difference)
    if seen.whole.is_loss():
        return f"and {verbs.costs} {size} on average"
    if seen.whole.is_gain():
        return f"and {verbs.gains} {size} on average"
    return f"and on average {verbs.changes} no more than chance"


def _from_to(seen: Evidence, change: Change) -> str:
    return f"from {seen.amounts.error(change.before)} to {seen.amounts.error(change.after)}"
