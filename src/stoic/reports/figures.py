"""Figures that look alike on every machine, and are the same bytes for the same results."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stoic.extras import need
from stoic.storage.atomic import replace_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so figures are alike on every machine
    "font.size": 8.0,
    "axes.labelsize": 8.0,
    "axes.titlesize": 8.0,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#444444",
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": 7.0,
    "legend.title_fontsize": 8.0,
    "pdf.fonttype": 42,
    "svg.hashsalt": "stoic",
}
_UNDATED: dict[str, dict[str, Any]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


@contextmanager
def drawing(path: Path, size: tuple[float, float]) -> "Iterator[Figure]":
    """Give a figure to draw in, and write it as PNG, SVG and PDF.

    Parameters
    ----------
    path : Path
        Of the files, without a suffix.
    size : pair of float
        Inches.

    Raises
    ------
    MissingDependency
        If matplotlib is not installed.
    OSError
        If a file cannot be written; an old one is left as it was.
    """
    with rc_context(STYLE):
        figure = new_figure(size)
        yield figure
        for kind, metadata in _UNDATED.items():
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, dpi=200, metadata=metadata)
            replace_file(path.with_name(f"{path.name}.{kind}"), buffer.getvalue())


@contextmanager
def rc_context(style: dict[str, Any]) -> Iterator[None]:
    """Draw in a style."""
    with _matplotlib().rc_context(style):
        yield


def axes_for(ax: "Axes | None", size: tuple[float, float]) -> "Axes":
    """Return axes to draw in: those that are given, or else those of a new figure of some inches.

    Raises
    ------
    MissingDependency
        If a figure is needed and matplotlib is not installed.
    """
    return new_figure(size).subplots() if ax is None else ax


def new_figure(size: tuple[float, float]) -> "Figure":
    """Return a figure, which pyplot does not know of."""
    _matplotlib()
    from matplotlib.figure import Figure  # noqa: PLC0415 - optional

    return Figure(figsize=size, layout="constrained")


def _matplotlib() -> Any:
    need("a figure", "matplotlib")
    import matplotlib as mpl  # noqa: PLC0415 - optional, and slow to import

    return mpl
