"""The tables of an answer, for a terminal and for a page."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from stoic.fitting.amounts import Amounts
from stoic.fitting.answer import Answer
from stoic.fitting.inspection import Section
from stoic.fitting.measuring import Errors, Means, half_width
from stoic.fitting.rivals import AVERAGE, CONSTANT, EQUAL, FIT
from stoic.inners.blocks import IntArray

_FEW = 3  # groups of the second table of a terminal
_WORST = 5  # of the groups that are shown: those with the largest errors; the others change most beyond chance


class Shown(NamedTuple):
    """The parts of the rows that a table shows: all, some groups, and the others together."""

    whole: Means
    groups: Means
    n_others: int
    others: Means | None


def shown(errors: Errors, other: str, most: int) -> Shown:
    """Return what a table shows of at most `most` groups: the worst, and those that change most."""
    groups = errors.groups
    if len(errors.labels) == 1:
        return Shown(errors.whole, groups.some([]), 0, None)
    named = groups.some(_chosen(groups, errors.rivals.index(other), most))
    n_others, others = errors.others(named.names) or (0, None)
    return Shown(errors.whole, named, n_others, others)


def _chosen(groups: Means, other: int, most: int) -> IntArray:
    p = len(groups.rows)
    if p <= most:
        return np.arange(p)
    certain = np.abs(groups.differences[other]) - half_width(groups.difference_errors[other], groups.rows)
    worst = np.unique(np.r_[np.arange(min(_WORST, most - 1)), groups.means[other].argmax()])
    by_change = np.argsort(-certain, kind="stable")
    return np.sort(np.r_[worst, by_change[~np.isin(by_change, worst)][: most - len(worst)]])


def short_tables(answer: Answer, most: int) -> list[Section]:
    """Return the tables of a terminal: errors of all rivals, and how far the fit is from the other one."""
    tables = [_short(answer, 0, most)]
    if len(answer.errors) > 1:
        tables.append(_short(answer, 1, _FEW))
    return tables


def title(answer: Answer, place: int) -> str:
    """Return the name of a measure with its unit."""
    measure = answer.errors[place].measure
    if measure.is_share:
        return f"{measure.name.capitalize()} in %"
    if len(answer.errors) > 1 or answer.target is None:
        return measure.name.capitalize()
    return f"{measure.name.capitalize()} in units of {answer.target}"


def _short(answer: Answer, place: int, most: int) -> Section:
    errors, amounts, other = answer.errors[place], answer.amounts[place], answer.other
    parts = shown(errors, other, most)
    head = ("", "rows", *errors.rivals, f"fit − {other}")
    rows = [_line(name, part, i, errors, amounts, other) for name, part, i in _lines(parts)]
    return Section(f"{title(answer, place)}, on {answer.tested_on}", head, rows)


def _lines(parts: Shown) -> Iterator[tuple[str, Means, int]]:
    """Yield names, and where their numbers are."""
    yield "all rows", parts.whole, 0
    yield from ((str(name), parts.groups, i) for i, name in enumerate(parts.groups.names))
    if parts.others is not None:
        yield others_name(parts.n_others, len(parts.groups.rows)), parts.others, 0


def others_name(count: int, n_named: int) -> str:
    """Return the name of the line for the groups that have none of their own."""
    what = "other groups" if n_named else "groups"
    return f"and {count:,} {what if count != 1 else what[:-1]}" if n_named else f"{count:,} {what}"


def _line(name: str, part: Means, i: int, errors: Errors, amounts: Amounts, other: str) -> Sequence[str]:
    place = errors.rivals.index(other)
    width = float(half_width(part.difference_errors[place, i], int(part.rows[i])))
    means = (amounts.bare(float(mean)) for mean in part.means[:, i])
    return name, f"{part.rows[i]:,}", *means, amounts.signed(float(part.differences[place, i]), width)


def page_tables(answer: Answer, most: int) -> list[Section]:
    """Return the tables of a page: the errors with their intervals, and how far the fit is from each rival."""
    return [_long(answer, place, most) for place in range(len(answer.errors))]


def _long(answer: Answer, place: int, most: int) -> Section:
    errors, amounts = answer.errors[place], answer.amounts[place]
    parts = shown(errors, answer.other, most)
    head = ["", "rows", "fit"]
    for rival in errors.rivals[1:]:
        head += [rival, f"fit − {rival}"]
    rows = [_long_line(name, part, i, amounts) for name, part, i in _lines(parts)]
    return Section(title(answer, place), head, rows)


def _long_line(name: str, part: Means, i: int, amounts: Amounts) -> Sequence[str]:
    n = int(part.rows[i])
    cells = [name, f"{n:,}"]
    for place in range(len(part.means)):
        width = float(half_width(part.errors[place, i], n))
        mean = amounts.bare(float(part.means[place, i]))
        cells.append(f"{mean} ± {amounts.bare(width)}" if place == 0 else mean)
        if place:
            width = float(half_width(part.difference_errors[place, i], n))
            cells.append(amounts.signed(float(part.differences[place, i]), width))
    return cells


def legend(answer: Answer) -> list[tuple[str, str]]:
    """Return what the columns of the tables are."""
    meanings = {
        FIT: f"{answer.fit_name}{_temperature(answer)}",
        AVERAGE: "the same estimator for the average over rows, which protects no group",
        EQUAL: "the same estimator with equal weights of the groups",
        CONSTANT: _constant(answer),
    }
    told = [(name, meanings[name]) for name in answer.errors[0].rivals]
    compared = "below zero where the fit is better; ± is half of a 95 % interval of differences row by row"
    return [*told, ("fit − …", compared)]


def _temperature(answer: Answer) -> str:
    """Return how strongly the fit protects groups; nothing where it is an average, and no other was asked for."""
    model = answer.model
    if not model.path_:
        return "" if model.memory_.levels.temperature is None else f" at temperature {model.temperature_:g}"
    if math.isinf(model.temperature_):
        return ", by cross-validation"
    cost = max(0.0, next(record["cost"] for record in model.path_ if record["chosen"]))
    return f" at temperature {model.temperature_:g}: by cross-validation, at a cost of {cost:.1%}"


def _constant(answer: Answer) -> str:
    if hasattr(answer.model, "classes_"):
        return "the most frequent class of the training rows, and the shares of all"
    level = getattr(answer.model, "quantile", 0.5) if answer.model.loss == "quantile" else 0.5
    return "the median of the training rows" if level == 0.5 else f"the {level:g} quantile of the training rows"
