"""`GroupTradeoffDisplay`: what protecting the worst group costs on average, along the path of temperatures."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, cast

from sklearn.utils.validation import check_is_fitted

from stoic.errors import InvalidProblem
from stoic.estimators.displays.axes import pyplot_axes, tidy
from stoic.reports.palette import COLORS, GRAY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class GroupTradeoffDisplay:
    """The worst regret (or error) of a group against the change of the mean error, a dot for each temperature.

    The path begins at the average, over all rows or groups. The dot of the temperature that was chosen is
    filled, and bars are standard errors of the differences from it: all on rows that were held out.

    Parameters
    ----------
    path : list of records
        Such as ``model.path_``.
    level : {"regret", "loss"}
        What groups are protected by: their regrets, or their errors.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from stoic import GroupDRORegressor, GroupTradeoffDisplay
    >>> rng = np.random.default_rng(0)
    >>> X, groups = rng.standard_normal((600, 2)), np.arange(600) % 3
    >>> y = X[:, 0] + 2.0 * (groups == 2) * X[:, 1] + rng.standard_normal(600)
    >>> model = GroupDRORegressor(protect="regret", temperature="auto", random_state=0).fit(X, y, groups=groups)
    >>> GroupTradeoffDisplay.from_estimator(model).ax_.get_xlabel()
    'mean error, above that of the average (%)'
    """

    ax_: "Axes"
    figure_: "Figure"

    def __init__(self, path: Sequence[dict[str, Any]], level: str = "regret") -> None:
        self.path, self.level = list(path), level

    @classmethod
    def from_estimator(cls, estimator: Any, ax: "Axes | None" = None) -> Self:
        """Draw the path of a model that was fitted with temperature="auto"."""
        check_is_fitted(estimator)
        display = cls(getattr(estimator, "path_", ()), estimator.protect)
        display.plot(ax)
        return display

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw in axes that are given, or in new ones, and return them."""
        if not self.path:
            raise InvalidProblem(
                "the model has no path: temperature was a number, or no group has a regret that chance does not "
                "explain, so that the average was taken, or the model comes from a file, which keeps no path; fit "
                'with temperature="auto" for a path.'
            )
        ax = pyplot_axes(ax, (5.5, 3.8))
        costs = [100.0 * record["cost"] for record in self.path]
        worst, errors = ([record[name] for record in self.path] for name in ("worst", "worst_deviation"))
        dots: dict[str, Any] = {"fmt": "o-", "color": COLORS[0], "markerfacecolor": "none", "capsize": 2.0}
        ax.errorbar(costs, worst, yerr=errors, linewidth=0.9, elinewidth=0.7, **dots)
        for cost, level, record in zip(costs, worst, self.path, strict=True):
            name = "average" if record["temperature"] == float("inf") else f"{record['temperature']:g}"
            ax.annotate(name, (cost, level), (5, 5), textcoords="offset points", fontsize="small", color=GRAY)
            if record["chosen"]:
                ax.plot(cost, level, "o", color=COLORS[1], markersize=8, zorder=4, label=f"chosen: {name}")
        level = "regret" if self.level == "regret" else "mean error"
        tidy(ax, xlabel="mean error, above that of the average (%)", ylabel=f"largest {level} of a group")
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, cast("Figure", ax.figure)
        return ax
