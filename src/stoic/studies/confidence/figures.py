"""Figures of a confidence study: quantiles of the gap against 1/δ, and the median gap against samples."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stoic.protocols import Vector
from stoic.reports.figures import axes_for, drawing
from stoic.reports.palette import looks_of
from stoic.reports.picture_labels import method_label, picture_label
from stoic.studies.confidence.quantiles import Band
from stoic.studies.confidence.results import SHOWN, MethodRuns, Rate, TailsResults
from stoic.studies.confidence.runs import LawSetting
from stoic.studies.confidence.words import dashes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANEL = 2.45, 2.1  # inches
_LEGEND = 0.22  # inches of a line of the legend
_ONE = 3.5, 2.9
_MOST_TICKS = 6
_DASHES: dict[str, Any] = {"solid": "-", "dash": (0, (4.0, 1.5)), "dot": (0, (1.0, 1.2))}
_FAR = 3.0  # times the gap at the start: what is above that is of no interest


def write_tails_figures(results: TailsResults, folder: Path) -> None:
    """Write ``figure_tails`` and ``figure_rates``, those that the study has, into a folder; see `drawing`."""
    if results.settings:
        rows = panels(results)
        width, height = _PANEL[0] * max(map(len, rows)), _PANEL[1] * len(rows)
        n_lines = 0 if _blanks(rows) else -(-len(results.spec.methods) // _legend_columns(rows))
        with drawing(folder / "figure_tails", (width, height + _LEGEND * n_lines)) as figure:
            _draw_panels(results, rows, figure)
    if results.rates:
        noises = list(dict.fromkeys(found.noise for found in results.rates))
        with drawing(folder / "figure_rates", (2.6 * max(2, len(noises)), 2.9)) as figure:
            places = figure.subplots(1, len(noises), squeeze=False, sharey=True)[0]
            for noise, axes in zip(noises, places, strict=True):
                median_gaps(results, noise, axes)
                axes.label_outer()


def panels(results: TailsResults) -> list[list[LawSetting]]:
    """Return the settings in rows: one row a noise, or all in one where each noise has one setting."""
    settings = list(results.settings)
    rows = [[one for one in settings if one.noise == noise] for noise in dict.fromkeys(s.noise for s in settings)]
    if max(map(len, rows)) > 1:
        return rows
    return [settings[first : first + 3] for first in range(0, len(settings), 3)]


def _legend_columns(rows: Sequence[Sequence[LawSetting]]) -> int:
    return _blanks(rows) or {1: 2, 2: 3}.get(max(map(len, rows)), 5)


def _blanks(rows: Sequence[Sequence[LawSetting]]) -> int:
    """Return how many places of the first row have no panel."""
    return max(map(len, rows)) - len(rows[0])


def _draw_panels(results: TailsResults, rows: list[list[LawSetting]], figure: "Figure") -> None:
    n_columns = max(map(len, rows))
    grid = figure.subplots(len(rows), n_columns, squeeze=False, sharex=True, sharey=True)
    for row, places in zip(rows, grid, strict=True):
        for setting, axes in zip(row, places, strict=False):
            quantile_lines(results, setting, axes, legend=False)
            axes.label_outer()
        for axes in places[len(row) :]:
            axes.set_visible(False)
    for place in range(n_columns):  # the lowest panel of a column has the labels of its axis
        lowest = [axes for row, axes in zip(rows, grid[:, place], strict=True) if place < len(row)][-1]
        lowest.tick_params(labelbottom=True)
        lowest.set_xlabel("δ")
    lines = {line.get_label(): line for axes in grid.flat for line in axes.get_legend_handles_labels()[0]}
    names = [method_label(name) for name in results.spec.methods if method_label(name) in lines]
    handles = [lines[name] for name in names]
    how: dict[str, Any] = {"ncols": _legend_columns(rows), "frameon": False}
    if not _blanks(rows):
        figure.legend(handles, names, loc="outside upper left", **how)
        return
    blank = grid[0][len(rows[0])]
    blank.set_visible(True)
    blank.set_axis_off()
    blank.legend(handles, names, loc="center left", **how).set_in_layout(False)


def quantile_lines(
    results: TailsResults, setting: LawSetting, ax: "Axes | None" = None, *, legend: bool = True
) -> "Axes":
    """Draw the (1 − δ)-quantiles of the gap against 1/δ on log scales, with their bands.

    An arrow marks a quantile whose band has no upper end. All settings have the same axis, on which there is no
    room for gaps above three times that of the starting point. The setting is one that has runs. Without axes a
    new figure is drawn; see `axes_for`.
    """
    axes = axes_for(ax, _ONE)
    for one in results.settings[setting]:
        _draw_quantiles(axes, one, _style(results.methods, one.method))
    _finish(axes, setting.name, "F(w) − F*")
    axes.set_ylim(*_limits(results))
    axes.set_xticks([1.0 / delta for delta in SHOWN], [f"{delta:g}" for delta in SHOWN])
    axes.set_xticks([], minor=True)
    every = [one for samples in results.settings.values() for one in samples]
    axes.set_xlim(1.8, 1.15 * max((1.0 / delta for one in every for delta in one.quantiles), default=10.0))
    if legend:
        axes.legend(frameon=False)
    return axes


def _style(methods: Sequence[str], method: str) -> dict[str, Any]:
    look = looks_of(methods)[method]
    dashes = _DASHES[dashes_of(methods)[method]]
    return {"color": look.light, "marker": look.marker, "linestyle": dashes}


def _limits(results: TailsResults) -> tuple[float, float]:
    """Return the ends of the axis that all settings share."""
    shown = []
    for setting, samples in results.settings.items():
        law = setting.law(results.spec)
        top = _FAR * law.gap(np.zeros(law.d))
        shown += [band.value for one in samples for band in one.quantiles.values() if 0.0 < band.value <= top]
    return (0.7 * min(shown), 1.5 * max(shown)) if shown else (0.1, 10.0)


def _draw_quantiles(axes: "Axes", one: MethodRuns, style: dict[str, Any]) -> None:
    found = {delta: band for delta, band in one.quantiles.items() if np.isfinite(band.value)}
    x, bands = 1.0 / np.array(list(found)), list(found.values())
    marked = [place for place, delta in enumerate(found) if delta in SHOWN]
    _line(axes, x, bands, style, label=method_label(one.method), markevery=marked)
    open_ends = [place for place, band in enumerate(bands) if band.is_open and place in marked]
    if open_ends:
        values = np.array([bands[place].value for place in open_ends])
        arrow: dict[str, Any] = {"lolims": True, "fmt": "none", "elinewidth": 0.7, "capsize": 1.6}
        axes.errorbar(x[open_ends], values, yerr=0.5 * values, color=style["color"], **arrow)


def _line(axes: "Axes", x: Vector, bands: Sequence[Band], style: dict[str, Any], **how: Any) -> None:
    """Draw a line with a marker, and shade its bands where they have both ends."""
    low, high = (np.array([getattr(band, end) for band in bands]) for end in ("low", "high"))
    axes.plot(x, [band.value for band in bands], markersize=3.2, linewidth=1.1, **style, **how)
    closed = np.isfinite(high) & (low > 0.0)
    axes.fill_between(x, low, high, where=closed, color=style["color"], alpha=0.13, linewidth=0.0)


def median_gaps(results: TailsResults, noise: str, ax: "Axes | None" = None) -> "Axes":
    """Draw the median gap against the samples of each group on log scales, with bands; the legend has the slopes.

    The noise is that of the labels. Without axes a new figure is drawn; see `axes_for`.
    """
    from matplotlib.ticker import EngFormatter  # noqa: PLC0415 - optional

    axes = axes_for(ax, _ONE)
    rates = [found for found in results.rates if found.noise == noise]
    for found in rates:
        finite = [place for place, band in enumerate(found.medians) if np.isfinite(band.value)]
        samples = np.array([found.samples[place] for place in finite], dtype=float)
        style = _style(results.methods, found.method)
        _line(axes, samples, [found.medians[place] for place in finite], style, label=_slope(found))
    _draw_limit(axes, results, noise, sorted({n for found in rates for n in found.samples}))
    _finish(axes, "", "median of F(w) − F*")
    if not np.isfinite([band.value for found in results.rates for band in found.medians]).any():
        axes.set_ylim(0.1, 10.0)
    axes.set_xlabel("samples of each group")
    lengths = sorted({n for found in rates for n in found.samples})
    if len(lengths) <= _MOST_TICKS:
        axes.set_xticks(lengths)
        axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.legend(
        title=f"{picture_label(noise)}: slope [95 % band]",
        alignment="left",
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        frameon=False,
        borderaxespad=0.2,
    )
    return axes


def _draw_limit(axes: "Axes", results: TailsResults, noise: str, lengths: Sequence[int]) -> None:
    """Draw the least mean gap that samples allow, where there is one."""
    limits = [LawSetting(noise, "labels", n).law(results.spec).limit(n) for n in lengths]
    if np.isfinite(limits).all() and limits:
        axes.plot(
            lengths, limits, color="0.5", linewidth=0.9, linestyle=(0, (1.0, 2.0)), label="limit of the mean"
        )


def _slope(found: Rate) -> str:
    if found.slope is None:
        return method_label(found.method)
    value, low, high = (f"{number:.2f}".replace("-", "−") for number in found.slope)
    return f"{method_label(found.method)}: {value} [{low}, {high}]"


def _finish(axes: "Axes", title: str, ylabel: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(picture_label(title))
    axes.set_ylabel(ylabel)
    axes.spines[["top", "right"]].set_visible(False)
