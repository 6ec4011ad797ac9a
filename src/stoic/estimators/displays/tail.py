r"""`TailDisplay`: are targets heavy-tailed? Their Hill plot and their upper quantiles, group by group."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from stoic.errors import InvalidProblem
from stoic.estimators.displays.axes import drawable, pyplot_axes, tidy
from stoic.estimators.frames import labels_of
from stoic.estimators.tail_index import distances, hill
from stoic.inners.labels import encode_groups
from stoic.inners.validation import check_vector
from stoic.protocols import Vector
from stoic.reports.palette import COLORS, GRAY
from stoic.reports.picture_labels import picture_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FIRST = 10  # of the largest distances, below which Hill's estimates are noise
_MOST_GROUPS = 8
_MOST_POINTS = 400  # of a curve
_LIMITS = {2.0: "variance", 4.0: "variance of squared errors"}


class TailDisplay:
    """Two pictures of a tail, for all rows and for each group.

    On the left Hill's estimate of the tail index against the number of largest rows it is made from: where the
    curve is flat is the index. Below 2 there is no variance, below 4 squared errors have none. On the right how
    often a distance from the median is exceeded, in units of the median distance: a straight line is a heavy tail.

    Parameters
    ----------
    targets : dict of str to array
        Targets by name, the first of all rows.

    Attributes
    ----------
    axes_ : array of two matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from stoic import TailDisplay
    >>> y = np.random.default_rng(0).standard_t(2.5, 2000)
    >>> display = TailDisplay.from_predictions(y, groups=np.arange(2000) % 2)
    >>> [line.get_label() for line in display.axes_[1].get_lines()]
    ['all', '0', '1']
    """

    axes_: "NDArray[Any]"
    figure_: "Figure"

    def __init__(self, targets: dict[str, Vector]) -> None:
        self.targets = targets

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, groups: Any = None, axes: "NDArray[Any] | None" = None
    ) -> Self:
        """Draw the tails of the residuals of a fitted estimator; `groups` may name a column of X."""
        return cls.from_predictions(y, estimator.predict(X), groups=labels_of(X, groups), axes=axes)

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_pred: Any = None, *, groups: Any = None, axes: "NDArray[Any] | None" = None
    ) -> Self:
        """Draw the tails of targets, or of what predictions leave of them.

        Parameters
        ----------
        y_true : array of shape (n,)
        y_pred : array of shape (n,), optional
        groups : array of shape (n,), optional
            Up to eight groups have curves of their own, the largest ones.
        axes : pair of Axes, optional

        Returns
        -------
        TailDisplay
        """
        y = check_vector("y_true", y_true, len(y_true))
        if y_pred is not None:
            y = y - check_vector("y_pred", y_pred, len(y))
        targets = {"all": y}
        if groups is not None:
            labels, codes = encode_groups(groups, len(y))
            sizes = np.bincount(codes)
            for i in np.sort(np.argsort(-sizes, kind="stable")[:_MOST_GROUPS]):
                targets[str(labels[i])] = y[codes == i]
        display = cls(targets)
        display.plot(axes)
        return display

    def plot(self, axes: "NDArray[Any] | None" = None) -> "NDArray[Any]":
        """Draw in two axes that are given, or in new ones, and return them."""
        axes = _pair(axes)
        for (name, y), color in zip(self.targets.items(), ("black", *COLORS), strict=False):
            try:
                far, estimates = distances(y), hill(y)
            except InvalidProblem:  # a group with too few rows for a tail has no curve
                continue
            how: dict[str, Any] = {"color": color, "linewidth": 1.8 if name == "all" else 0.9}
            if len(estimates) > _FIRST:
                k = _thinned(_FIRST, len(estimates))
                axes[0].plot(k, estimates[k - 1], **how)
            k = _thinned(1, len(far))
            axes[1].plot(drawable(far[k - 1] / np.median(far)), k / len(y), label=picture_label(name), **how)
        self._finish(axes)
        self.axes_, self.figure_ = axes, axes[0].figure
        return axes

    def _finish(self, axes: "NDArray[Any]") -> None:
        left, right = axes
        for limit, what in _LIMITS.items():
            left.axhline(limit, color=GRAY, linewidth=0.7, linestyle=":")
            left.annotate(f"below: no {what}", (1.0, limit), xycoords=("axes fraction", "data"), ha="right",
                          va="top", fontsize="small", color=GRAY)  # fmt: skip
        left.set_xscale("log")
        left.set_ylim(0.0, 8.0)
        tidy(left, xlabel="largest rows used", ylabel="Hill's tail index")
        right.set_xscale("log")
        right.set_yscale("log")
        tidy(right, xlabel="distance from the median / its median", ylabel="share of rows beyond")
        if right.get_lines():
            right.legend(frameon=False, fontsize="small")


def _thinned(first: int, last: int) -> "NDArray[np.intp]":
    """Return whole numbers up to `last`, as many as a picture with a logarithmic axis can show."""
    if last - first < _MOST_POINTS:
        return np.arange(first, last + 1)
    return np.unique(np.geomspace(first, last, _MOST_POINTS).round().astype(np.intp))


def _pair(axes: "NDArray[Any] | None") -> "NDArray[Any]":
    if axes is not None:
        pair = np.asarray(axes, dtype=object).ravel()
        if len(pair) != 2:
            raise InvalidProblem(f"{len(pair)} axes were given; two are needed.")
        return pair
    left = pyplot_axes(None, (9.0, 3.6))
    figure: Any = left.figure
    left.remove()
    return np.asarray(figure.subplots(1, 2))
