"""`ConvergenceDisplay`: the objective while a model was fitted, with marks where samples were truncated."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from stoic.errors import InvalidProblem
from stoic.estimators.displays.axes import drawable, pyplot_axes, tidy
from stoic.reports.palette import COLORS, GRAY
from stoic.solve.result import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class ConvergenceDisplay:
    """The objective on a sample of the rows against the rows drawn.

    The first phase, for the average over the groups, is gray; it minimizes something else, so that the curve may
    jump where the second one begins. Ticks at the bottom show the share of truncated samples at each record: an
    eighth of the axes high where all were.

    Parameters
    ----------
    history : list of records
        Such as ``model.history_``.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from stoic import ConvergenceDisplay, GroupDRORegressor
    >>> X = np.arange(20.0)[:, None]
    >>> model = GroupDRORegressor().fit(X, np.sin(X[:, 0]), groups=np.arange(20) % 2)
    >>> ConvergenceDisplay.from_estimator(model).ax_.get_xlabel()
    'rows drawn'
    """

    ax_: "Axes"
    figure_: "Figure"

    def __init__(self, history: Sequence[Record]) -> None:
        self.history = list(history)

    @classmethod
    def from_estimator(cls, estimator: Any, ax: "Axes | None" = None) -> Self:
        """Draw the history of a fitted model."""
        check_is_fitted(estimator)
        return cls.from_history(estimator.history_, ax)

    @classmethod
    def from_history(cls, history: Sequence[Record], ax: "Axes | None" = None) -> Self:
        """Draw records that have "samples" and "objective"; those of `minimize` have what its observers gave."""
        display = cls(history)
        display.plot(ax)
        return display

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw in axes that are given, or in new ones, and return them."""
        if not self.history or "objective" not in self.history[0]:
            raise InvalidProblem(
                "the history has no 'objective'; fit a model, or give minimize(..., observers={'objective': F})."
            )
        ax = pyplot_axes(ax, (5.5, 3.6))
        phases = np.array([record.get("phase", 1) for record in self.history])
        self._draw(ax, phases == 0, "average over groups", GRAY)
        self._draw(ax, phases == 1, "groups at risk", COLORS[0])
        watched = [record for record in self.history if "validation_loss" in record]
        if watched:
            x, y = ([record[name] for record in watched] for name in ("samples", "validation_loss"))
            ax.plot(x, drawable(y), color=COLORS[1], linestyle="--", label="worst group, held out")
        self._mark_truncation(ax)
        tidy(ax, xlabel="rows drawn", ylabel="objective, on a sample of the rows")
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, cast("Figure", ax.figure)
        return ax

    def _draw(self, ax: "Axes", chosen: Any, label: str, color: str) -> None:
        records = [record for record, is_chosen in zip(self.history, chosen, strict=True) if is_chosen]
        if records:
            x, y = ([record[name] for record in records] for name in ("samples", "objective"))
            ax.plot(x, drawable(y), color=color, marker="." if len(x) < 60 else "", label=label)

    def _mark_truncation(self, ax: "Axes") -> None:
        kinds = {"truncated_y": (COLORS[2], "losses truncated"), "truncated_z": (COLORS[3], "slopes truncated")}
        for name, (color, label) in kinds.items():
            marks = [(record["samples"], record.get(name, 0.0)) for record in self.history if record.get(name)]
            if marks:
                x, share = np.array(marks).T
                ax.vlines(x, 0.0, 0.125 * share, color=color, transform=ax.get_xaxis_transform(), label=label)
