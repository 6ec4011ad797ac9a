"""`GroupRiskDisplay`: the mean error of each group, beside that of another model."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from stoic.estimators.displays.axes import pyplot_axes, tidy
from stoic.estimators.frames import labels_of
from stoic.estimators.scoring import errors_of
from stoic.inners.labels import encode_groups
from stoic.protocols import Vector
from stoic.reports.palette import COLORS, GRAY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TWO_ERRORS = 1.96


class GroupRiskDisplay:
    """The mean error of each group as a dot with its 95 % interval, the worst on top.

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
    ) -> None:
        self.groups, self.risks, self.errors, self.sizes = groups, risks, errors, sizes
        self.baseline, self.error_name = baseline, error_name

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
        members = [codes == i for i in range(len(labels))]
        sizes = np.array([rows.sum() for rows in members], dtype=float)
        risks = np.array([losses[rows].mean() for rows in members])
        errors = np.array([losses[rows].std() for rows in members]) / np.sqrt(sizes)
        before = None
        if baseline is not None:
            others = errors_of(y_true, baseline, error)
            before = np.array([others[rows].mean() for rows in members])
        name = error if isinstance(error, str) else getattr(error, "__name__", "own")
        display = cls(labels, risks, errors, sizes, before, name)
        display.plot(ax)
        return display

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw in axes that are given, or in new ones, and return them."""
        order = np.argsort(self.risks)
        ax = pyplot_axes(ax, (5.5, 1.2 + 0.32 * len(order)))
        places = np.arange(len(order))
        ends = _TWO_ERRORS * self.errors[order]
        dots: dict[str, Any] = {"fmt": "o", "color": COLORS[0], "capsize": 2.5, "zorder": 3}
        ax.errorbar(self.risks[order], places, xerr=ends, label="model", **dots)
        if self.baseline is not None:
            before = self.baseline[order]
            ax.scatter(before, places, facecolors="none", edgecolors=COLORS[1], zorder=3, label="baseline")
            ax.hlines(places, before, self.risks[order], color=GRAY, linewidth=0.8, zorder=2)
            ax.legend(frameon=False, loc="lower right")
        counts = [
            f"{label} ({int(size):,})" for label, size in zip(self.groups[order], self.sizes[order], strict=True)
        ]
        ax.set_yticks(places, counts)
        tidy(ax, xlabel=f"mean {self.error_name} error, 95 % interval")
        ax.grid(axis="x", linewidth=0.4, color="#dddddd")
        ax.set_axisbelow(True)
        self.ax_, self.figure_ = ax, cast("Figure", ax.figure)
        return ax
