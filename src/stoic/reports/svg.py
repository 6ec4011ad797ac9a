"""Figures as SVG within a page: in its fonts and its colors, light or dark; the same bytes for the same figure."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING

from stoic.reports.figures import STYLE, new_figure, rc_context
from stoic.reports.html import Html
from stoic.reports.palette import GRAY, LOOKS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INK, _TICKS = "#1d1f21", STYLE["axes.edgecolor"]
_FONT = {name: 9.0 for name in STYLE if name.endswith("size") and "major" not in name}
_STYLE = {
    **STYLE,
    **_FONT,
    "svg.fonttype": "none",  # text stays text
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _TICKS,
    "ytick.color": _TICKS,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
}
_VARIABLES = {
    **{look.light: f"--color-{i}" for i, look in enumerate(LOOKS)},
    _INK: "--ink",
    "#000000": "--ink",
    _TICKS: "--muted",
    GRAY: "--muted",
    "#dddddd": "--line",
}
_UNUSED = re.compile(r"<metadata>.*?</metadata>|<\?xml.*?\?>|<!DOCTYPE.*?>|(?<=<g) id=\"[^\"]*\"", re.DOTALL)
_STYLED = re.compile(r'style="[^"]*"')
_FAMILY = re.compile(r"font-family: [^;\"]*;? ?")
_COLOR = re.compile(r"#[0-9a-f]{6}")


class Picture:
    """A figure to draw in, and after that the SVG of it."""

    def __init__(self, figure: "Figure") -> None:
        self.figure = figure
        self.svg = Html("")


@contextmanager
def picture(what: str, size: tuple[float, float]) -> Iterator[Picture]:
    """Give a picture to draw in, whose `svg` is there afterwards.

    Parameters
    ----------
    what : str
        What it shows, for those who do not see it. Different on each picture of a page.
    size : pair of float
        Inches.

    Raises
    ------
    MissingDependency
        If matplotlib is not installed.
    """
    with rc_context({**_STYLE, "svg.hashsalt": what}):
        made = Picture(new_figure(size))
        yield made
        buffer = io.StringIO()
        made.figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    text = _STYLED.sub(lambda found: _themed(found[0]), _UNUSED.sub("", buffer.getvalue())).strip()
    made.svg = Html(text.replace("<svg", f'<svg role="img" aria-label="{escape(what)}"', 1))


def _themed(style: str) -> str:
    """Return a style with the page's fonts, and its colors by the names that `theme` gives them."""
    return _COLOR.sub(_variable, _FAMILY.sub("", style))


def _variable(found: re.Match[str]) -> str:
    return f"var({_VARIABLES[found[0]]})" if found[0] in _VARIABLES else found[0]


def theme() -> str:
    """Return CSS that names the colors of pictures, on light and on dark ground."""
    light = "".join(f"--color-{i}: {look.light}; " for i, look in enumerate(LOOKS))
    dark = "".join(f"--color-{i}: {look.dark}; " for i, look in enumerate(LOOKS))
    return f":root {{ {light}}}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark}}} }}\n"
