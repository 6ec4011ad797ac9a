"""The paper's Figure 1: test error against samples, with error bars."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stoic.errors import InvalidParameter
from stoic.protocols import Vector
from stoic.reports.figures import axes_for, drawing
from stoic.reports.palette import Look, looks_of
from stoic.reports.picture_labels import method_label
from stoic.studies.paper.results import Curve, Results
from stoic.studies.shared.statistics import averages, is_wide

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BARS, _FEWEST_BARS = 8, 3  # of a curve, at points of its own where there are enough; more hide each other
_SIZE = 3.5, 2.9  # inches: one column of a page


def write_figures(results: Results, folder: Path) -> None:
    """Write ``figure_l1`` and ``figure_l2``, those that the experiment has, into a folder; see `drawing`.

    The same results give the same bytes.
    """
    for regularizer in results.spec.regularizers:
        with drawing(folder / f"figure_{regularizer}", _SIZE) as figure:
            error_bars(results, regularizer, figure.subplots())


def error_bars(results: Results, regularizer: str, ax: "Axes | None" = None) -> "Axes":
    """Draw test MSE against samples: the mean over trials, and its standard deviation as error bars.

    The scale is logarithmic where the means span more than a factor of ten. A mean is left out where it is not
    finite, that is from where the first of the trials diverged; the legend says how many did. A regularizer that
    is none of the spec's is refused. Without axes a new figure is drawn; see `axes_for`.
    """
    spec = results.spec
    if regularizer not in spec.regularizers:
        raise InvalidParameter(f"{regularizer!r} is not among the regularizers {', '.join(spec.regularizers)}.")
    axes = axes_for(ax, _SIZE)
    curves = [curve for curve in results.main if curve.setting.regularizer == regularizer]
    looks = looks_of(spec.methods)
    drawn = [
        _draw(axes, curve, looks[curve.setting.method], (place, len(curves))) for place, curve in enumerate(curves)
    ]
    _finish(axes, np.concatenate([np.empty(0), *drawn]), curves)
    return axes


def _draw(axes: "Axes", curve: Curve, look: Look, turn: tuple[int, int]) -> Vector:
    """Draw a curve, its bars where it is its turn among others, and return the means that can be seen."""
    found = averages(curve.scores["mse"])
    finite = np.isfinite(found.mean)
    mean = found.mean[finite]
    place, count = turn
    distance = max(1, min(max(len(finite) // _BARS, count), len(finite) // _FEWEST_BARS))
    every = place * distance // count, distance
    axes.errorbar(
        curve.samples[finite],
        mean,
        yerr=np.where(np.isfinite(found.deviation[finite]), found.deviation[finite], 0.0),
        errorevery=every,
        markevery=every,
        label=_name(curve),
        color=look.light,
        marker=look.marker,
        markersize=3.2,
        linewidth=1.1,
        elinewidth=0.8,
        capsize=1.8,
        capthick=0.8,
    )
    return mean


def _name(curve: Curve) -> str:
    name, diverged = method_label(curve.setting.method), curve.endings.get("diverged", 0)
    return f"{name}, diverged in {diverged} of {len(curve.trials)}" if diverged else name


def _finish(axes: "Axes", means: Vector, curves: list[Curve]) -> None:
    """Set scale, labels and legend, or say that there is nothing to show."""
    from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator  # noqa: PLC0415 - optional

    axes.set_xlabel("samples")
    axes.set_ylabel("test MSE")
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlim(left=0.0)
    if is_wide(means):
        axes.set_yscale("log", nonpositive="clip")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter("")
    if curves:
        _legend(axes, curves)
    if not means.size:
        why = "no finite mean to show" if curves else "no trial has ended yet"
        axes.text(0.5, 0.5, why, transform=axes.transAxes, ha="center", va="center")
        axes.set(xticks=[], yticks=[])


def _legend(axes: "Axes", curves: list[Curve]) -> None:
    """Put the legend above the axes, where it hides nothing."""
    axes.legend(
        title=f"{method_label(curves[0].setting.regularizer)} regularizer",
        alignment="left",
        ncols=2 if sum("diverged" in curve.endings for curve in curves) <= 1 else 1,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        frameon=False,
        borderaxespad=0.2,
        borderpad=0.2,
        handlelength=1.6,
        columnspacing=1.4,
        labelspacing=0.35,
    )
