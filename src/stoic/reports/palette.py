"""Colors and markers of methods and groups, the same in figures, charts and displays."""

import itertools
from collections.abc import Iterable
from typing import NamedTuple

# The colors of Okabe and Ito, which people with any color vision tell apart; a little darker where needed.
COLORS = ("#0072b2", "#c65500", "#00835f", "#a64d83", "#8a6d00", "#5b5fc7", "#7a4a2b", "#555555")
GRAY = "#777777"
PAPER_METHODS = ("rrosc", "rmscg", "asc-pg", "rcivr")
"""The methods that the paper compares; they look the same in every figure."""


class Look(NamedTuple):
    """The look of a method: its colors on light and on dark ground, and its marker (matplotlib's, plotly's)."""

    light: str
    dark: str
    marker: str
    symbol: str


_ON_DARK = ("#56b4e9", "#ff8f4d", "#35c99a", "#e79cc5", "#e6c34d", "#a5a8ff", "#d3a07c", "#bbbbbb")
_MARKERS = (
    ("o", "circle"),
    ("s", "square"),
    ("^", "triangle-up"),
    ("D", "diamond"),
    ("v", "triangle-down"),
    ("P", "cross"),
    ("X", "x"),
    ("*", "star"),
)
LOOKS = tuple(Look(light, dark, *how) for light, dark, how in zip(COLORS, _ON_DARK, _MARKERS, strict=True))

# For more methods than that: each color again, with other markers.
_MORE = tuple(
    Look(one.light, one.dark, other.marker, other.symbol)
    for shift in (3, 5)
    for one, other in zip(LOOKS, (*LOOKS[shift:], *LOOKS[:shift]), strict=True)
)


def looks_of(methods: Iterable[str]) -> dict[str, Look]:
    """Return a look for each method; the paper's four have the same in every experiment."""
    names = list(methods)
    fixed = {name: look for name, look in zip(PAPER_METHODS, LOOKS, strict=False) if name in names}
    free = (look for look in (*LOOKS[len(PAPER_METHODS) :], *LOOKS, *_MORE) if look not in fixed.values())
    others = dict.fromkeys(free)  # each once
    rest = itertools.cycle(others)
    return {name: fixed[name] if name in fixed else next(rest) for name in names}
