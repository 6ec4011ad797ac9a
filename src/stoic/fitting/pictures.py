"""The pictures on the page about a fit."""

from typing import Any

import numpy as np

from stoic.estimators.base import GroupDROModel
from stoic.estimators.displays.convergence import ConvergenceDisplay
from stoic.estimators.displays.group_risk import TWO_ERRORS, GroupRiskDisplay
from stoic.estimators.displays.tail import TailDisplay
from stoic.estimators.displays.tradeoff import GroupTradeoffDisplay
from stoic.extras import INSTALL, not_installed
from stoic.fitting.answer_tables import shown
from stoic.fitting.measuring import Errors, Means, half_width
from stoic.fitting.schemas import FileRows
from stoic.reports.html import Html, element, joined
from stoic.reports.picture_labels import picture_label
from stoic.reports.svg import picture

NO_PICTURES = f"the page has no pictures, which matplotlib draws; {INSTALL} brings it."
_MOST_GROUPS = 30
_WIDTH = 5.2  # inches, of which a small screen shows two thirds


def can_draw() -> bool:
    """Whether matplotlib is there, without which a page has no pictures."""
    return not not_installed("matplotlib")


def of_groups(errors: Errors, other: str, names: tuple[str, str], unit: str) -> Html:
    """Return the errors of the groups under the fit, with 95 % intervals, and under another rival.

    Parameters
    ----------
    errors : Errors
    other : str
        The other rival.
    names : pair of str
        Of both, in the legend.
    unit : str
        What the axis shows.
    """
    groups = shown(errors, other, _MOST_GROUPS).groups
    if len(groups.rows) < 2 or not can_draw():
        return Html("")
    with picture(f"{unit} of each group", (_WIDTH, 1.1 + 0.27 * len(groups.rows))) as made:
        _draw_groups(groups, errors, other, names, made.figure.subplots())
        chosen = (
            ""
            if len(groups.rows) == len(errors.labels)
            else f"\n{len(groups.rows)} of {len(errors.labels):,} groups"
        )
        made.figure.axes[0].set_xlabel(f"{picture_label(unit)}, 95 % interval{chosen}")
    return element("figure", made.svg)


def _draw_groups(groups: Means, errors: Errors, other: str, names: tuple[str, str], ax: Any) -> None:
    place = errors.rivals.index(other)
    scale = 100.0 if errors.measure.is_share else 1.0
    widths = half_width(groups.errors[0], groups.rows) / TWO_ERRORS  # by Student's t, as in the tables
    before = scale * groups.means[place] if place else None
    GroupRiskDisplay(
        groups.names, scale * groups.means[0], scale * widths, groups.rows.astype(float), before, names=names
    ).plot(ax)


def of_tradeoff(model: GroupDROModel) -> Html:
    """Return what protecting the worst group costs at each temperature that was tried."""
    with picture("largest regret or error of a group against the mean error", (_WIDTH, 3.4)) as made:
        GroupTradeoffDisplay.from_estimator(model, made.figure.subplots())
    return element("figure", made.svg)


def of_convergence(model: GroupDROModel) -> Html:
    """Return the objective while the model was fitted; and the loss on rows held out, if it was watched."""
    watched = any("validation_loss" in record for record in model.history_)
    figures = []
    for show in ("objective", "validation_loss") if watched else ("objective",):
        with picture(f"{show.replace('_', ' ')} against rows drawn", (_WIDTH, 3.0)) as made:
            ConvergenceDisplay.from_estimator(model, made.figure.subplots(), show=show)
        figures.append(element("figure", made.svg))
    return element("div", joined(figures), class_="pair")


def of_tails(model: GroupDROModel, table: FileRows) -> Html:
    """Return the tails of the residuals of a regression."""
    y: Any = table.y
    size = (_WIDTH, 3.4)
    with picture("Hill plot of the residuals", size) as left, picture("share of rows beyond", size) as right:
        axes = np.array([left.figure.subplots(), right.figure.subplots()], dtype=object)
        TailDisplay.from_predictions(y, model.predict(table.X), groups=table.groups, axes=axes)
    return element("div", *(element("figure", one.svg) for one in (left, right)), class_="pair")
