"""`ConvergenceDisplay`: the objective while a model was fitted, with marks where samples were truncated."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from stoic.checks import check_one_of
from stoic.errors import InvalidProblem
from stoic.estimators.displays.axes import drawable, pyplot_axes, tidy
from stoic.reports.palette import COLORS
from stoic.solve.result import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FEW = 60  # records that have a dot each
_LEAST_SPAN = 0.01  # of the vertical axis, in parts of what is drawn
_LABELS = {
    "objective": "objective, on a sample of the rows",
    "validation_loss": "loss of the worst group, on rows held out",
}
_REMEDIES = {
    "objective": "fit a model, or give minimize(..., observers={'objective': F})",
    "validation_loss": "fit a model with early_stopping=True",
}


class ConvergenceDisplay:
    """The objective on a sample of the rows against the rows drawn, or the loss on rows held out.

    Of a model only the last phase is drawn: the one before, for the average, minimizes something else. Ticks at
    the bottom show the share of truncated samples at each record: an eighth of the axes high where all were.

    Parameters
    ----------
    history : list of records
        Such as ``model.history_``.
    show : {"objective", "validation_loss"}, default "objective"
        What is drawn; the loss of the worst group on rows held out is there with early stopping.

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

    def __init__(self, history: Sequence[Record], show: str = "objective") -> None:
        check_one_of("show", show, tuple(_LABELS))
        self.history, self.show = list(history), show

    @classmethod
    def from_estimator(cls, estimator: Any, ax: "Axes | None" = None, *, show: str = "objective") -> Self:
        """Draw the history of a fitted model."""
        check_is_fitted(estimator)
        return cls.from_history(estimator.history_, ax, show=show)

    @classmethod
    def from_history(cls, history: Sequence[Record], ax: "Axes | None" = None, *, show: str = "objective") -> Self:
        """Draw records that have "samples" and "objective"; those of `minimize` have what its observers gave."""
        display = cls(history, show)
        display.plot(ax)
        return display

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw in axes that are given, or in new ones, and return them."""
        records = [record for record in self._last_phase() if self.show in record]
        if not records:
            raise InvalidProblem(f"the history has no {self.show!r}; {_REMEDIES[self.show]}.")
        ax = pyplot_axes(ax, (5.5, 3.6))
        x, y = ([record[name] for record in records] for name in ("samples", self.show))
        ax.plot(x, drawable(y), color=COLORS[0], marker="." if len(x) < _FEW else "")
        ax.ticklabel_format(useOffset=False)
        _widen(ax, float(np.mean(y)))
        self._mark_truncation(ax, records)
        tidy(ax, xlabel="rows drawn", ylabel=_LABELS[self.show])
        self.ax_, self.figure_ = ax, cast("Figure", ax.figure)
        return ax

    def _last_phase(self) -> list[Record]:
        """Return the records of what was minimized last: all, where there are no phases."""
        last = max((record.get("phase", 1) for record in self.history), default=1)
        return [record for record in self.history if record.get("phase", 1) == last]

    def _mark_truncation(self, ax: "Axes", records: Sequence[Record]) -> None:
        kinds = {"truncated_y": (COLORS[2], "losses truncated"), "truncated_z": (COLORS[3], "slopes truncated")}
        for name, (color, label) in kinds.items():
            marks = [(record["samples"], record[name]) for record in records if record.get(name)]
            if marks:
                x, share = np.array(marks).T
                ax.vlines(x, 0.0, 0.125 * share, color=color, transform=ax.get_xaxis_transform(), label=label)
                ax.legend(frameon=False)


def _widen(ax: "Axes", typical: float) -> None:
    """Make the vertical axis so long that what is settled looks so: rounding is no course."""
    low, high = ax.get_ylim()
    missing = _LEAST_SPAN * abs(typical) - (high - low)
    if missing > 0.0:
        ax.set_ylim(low - missing / 2.0, high + missing / 2.0)
