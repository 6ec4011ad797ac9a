"""`GroupRiskDisplay`: the mean error of each group, beside that of another model."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from stoic.estimators.displays.axes import drawable, pyplot_axes, tidy
from stoic.estimators.frames import labels_of
from stoic.estimators.scoring import errors_of
from stoic.inners.blocks import means_by
from stoic.inners.labels import encode_groups
from stoic.protocols import Vector
from stoic.reports.palette import COLORS, GRAY
from stoic.reports.picture_labels import picture_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_GROUPS = 50
"""That are shown: more would be a picture that nobody reads, of any height."""

TWO_ERRORS = 1.96


class GroupRiskDisplay:
    """The mean error of each group as a dot with its 95 % interval, the worst on top.

    Of more than 50 groups the 50 worst are shown.

    Parameters
    ----------
    groups : array of shape (p,)
        Labels.
    risks, errors : array of shape (p,)
        Means, and their standard errors.
    sizes : array of shape (p,)
        Rows of each group.
    baseline : array of shape (p,), optional
        Means of another model.
    error_name : str
    names : pair of str
        Of the model and of the other one, in the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from stoic import GroupRiskDisplay
    >>> y, groups = np.arange(4.0), np.array(["north", "north", "south", "south"])
    >>> display = GroupRiskDisplay.from_predictions(y, np.zeros(4), groups=groups)
    >>> [tick.get_text() for tick in display.ax_.get_yticklabels()]
    ['north (2)', 'south (2)']
    """

    ax_: "Axes"
    figure_: "Figure"

    def __init__(
        self,
        groups: NDArray[Any],
        risks: Vector,
        errors: Vector,
        sizes: Vector,
        baseline: Vector | None = None,
        error_name: str = "absolute",
        names: tuple[str, str] = ("model", "baseline"),
    ) -> None:
        self.groups, self.risks, self.errors, self.sizes = groups, risks, errors, sizes
        self.baseline, self.error_name, self.names = baseline, error_name, names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        groups: Any,
        baseline: Any = None,
        error: str | Callable[[Any, Any], Vector] = "absolute",
        ax: "Axes | None" = None,
    ) -> Self:
        """Draw the errors of a fitted estimator, and of another one as the baseline.

        Parameters
        ----------
        estimator : estimator
        X, y : the rows and their targets
        groups : array of shape (n,), or str
            Labels, or the column of X that holds them.
        baseline : estimator, optional
            A model to compare with, say one for the average.
        error : {"absolute", "squared", "zero-one"} or function
            As for `worst_group_score`.
        ax : Axes, optional

        Returns
        -------
        GroupRiskDisplay
        """
        before = None if baseline is None else baseline.predict(X)
        how: dict[str, Any] = {"groups": labels_of(X, groups), "baseline": before, "error": error}
        return cls.from_predictions(y, estimator.predict(X), ax=ax, **how)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        groups: Any,
        baseline: Any = None,
        error: str | Callable[[Any, Any], Vector] = "absolute",
        ax: "Axes | None" = None,
    ) -> Self:
        """Draw the errors of predictions, and of others as the baseline; see `from_estimator`."""
        losses = errors_of(y_true, y_pred, error)
        labels, codes = encode_groups(groups, len(losses))
        sizes = np.bincount(codes).astype(float)
        risks = means_by(codes, losses, len(labels))
        with np.errstate(over="ignore"):  # an infinite error is drawn as a very long one
            errors = np.sqrt(means_by(codes, np.square(losses - risks[codes]), len(labels)) / sizes)
        before = None
        if baseline is not None:
            before = means_by(codes, errors_of(y_true, baseline, error), len(labels))
        name = error if isinstance(error, str) else getattr(error, "__name__", "own")
        display = cls(labels, risks, errors, sizes, before, name)
        display.plot(ax)
        return display

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw in axes that are given, or in new ones, and return them."""
        order = np.argsort(self.risks, kind="stable")[-MOST_GROUPS:]
        ax = pyplot_axes(ax, (5.5, 1.2 + 0.32 * len(order)))
        places = np.arange(len(order))
        risks, ends = drawable(self.risks[order]), drawable(TWO_ERRORS * self.errors[order])
        dots: dict[str, Any] = {"fmt": "o", "color": COLORS[0], "capsize": 2.5, "zorder": 3}
        own = ax.errorbar(risks, places, xerr=ends, **dots)
        if self.baseline is not None:
            before = drawable(self.baseline[order])
            other = ax.scatter(before, places, facecolors="none", edgecolors=COLORS[1], zorder=3)
            ax.hlines(places, before, risks, color=GRAY, linewidth=0.8, zorder=2)
            above: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.0}
            ax.legend([own, other], self.names, frameon=False, ncols=2, **above)
        counts = [
            f"{picture_label(label)} ({int(size):,})"
            for label, size in zip(self.groups[order], self.sizes[order], strict=True)
        ]
        ax.set_yticks(places, counts)
        ax.set_ylim(-0.6, len(order) - 0.4)
        tidy(ax, xlabel=f"mean {picture_label(self.error_name)} error, 95 % interval")
        if len(order) < len(self.risks):
            ax.set_ylabel(f"the {len(order)} worst of {len(self.risks):,} groups")
        ax.grid(axis="x", linewidth=0.4, color="#dddddd")
        ax.set_axisbelow(True)
        self.ax_, self.figure_ = ax, cast("Figure", ax.figure)
        return ax
