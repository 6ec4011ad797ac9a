"""How methods, numbers and noises are written and drawn, alike in tables, figures and the report."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from stoic.estimators.displays.drawing import COLORS
from stoic.experiments.runs import Setting
from stoic.experiments.spec import PAPER_METHODS, UNTUNED


class Look(NamedTuple):
    """How a method is drawn: its colors on light and on dark ground, and its marker (matplotlib's, plotly's)."""

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
SELECTED_BY = {"plain": "mean", "robust": "median of means"}
"""What the validation errors of a cell are reduced to, by way of selection."""

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


def label(name: str) -> str:
    """Return the name of a method or regularizer as the paper writes it.

    Examples
    --------
    >>> label("asc-pg"), label("l1")
    ('ASC-PG', 'L1')
    """
    return name.upper()


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence.

    Examples
    --------
    >>> listed(["RROSC", "RMSCG", "ASC-PG"])
    'RROSC, RMSCG and ASC-PG'
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def counted(count: int, what: str) -> str:
    """Return how many there are of something.

    Examples
    --------
    >>> counted(1, "trial"), counted(1200, "pair")
    ('1 trial', '1,200 pairs')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def number(value: float) -> str:
    """Return a number with four digits; a dash where there is none.

    Examples
    --------
    >>> number(0.123456), number(math.inf), number(math.nan), number(123456.0)
    ('0.1235', '∞', '–', '1.235e+05')
    """
    if math.isnan(value):
        return "–"
    return f"{value:.4g}" if math.isfinite(value) else "∞"


def plus_minus(mean: float, deviation: float) -> str:
    """Return a mean with its deviation, both to the second digit of the deviation.

    Examples
    --------
    >>> plus_minus(0.123456, 0.00789), plus_minus(0.5, math.nan), plus_minus(math.inf, math.nan)
    ('0.1235 ± 0.0079', '0.5', '∞')
    """
    if not (math.isfinite(mean) and math.isfinite(deviation)):
        return number(mean)
    if not 1e-4 <= abs(mean) < 1e5 or not 1e-6 <= deviation < 1e5:
        return f"{number(mean)} ± {deviation:.2g}"
    digits = max(0, 1 - math.floor(math.log10(deviation)))
    return f"{mean:.{digits}f} ± {deviation:.{digits}f}"


def percent(share: float) -> str:
    """Return a share in percent.

    Examples
    --------
    >>> percent(0.0123), percent(0.0), percent(0.00001)
    ('1.23 %', '0 %', '0.001 %')
    """
    if not math.isfinite(share):
        return "–"
    return f"{100 * share:.3g} %"


def power(value: float) -> str:
    """Return a number of a grid, powers of ten as such.

    Examples
    --------
    >>> power(1e-05), power(1.0), power(0.3), power(UNTUNED)
    ('10⁻⁵', '1', '0.3', 'untuned')
    """
    if value == UNTUNED:
        return "untuned"
    exponent = round(math.log10(value))
    if float(f"1e{exponent}") != value or exponent == 0:
        return f"{value:g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def problem_name(setting: Setting) -> str:
    """Return the loss and the temperature of a setting in words."""
    return f"{setting.loss} loss, temperature {setting.temperature:g}"


_NOISES: Mapping[str, str] = {
    "pareto": "Pareto with tail {}, shifted to mean 0",
    "student": "Student's t with {} degrees of freedom",
    "sparse": "uniform on [−{0}, {0}] in a share of the rows, plus a standard normal in all",
    "gaussian": "normal with standard deviation {}",
}


def noise_in_words(name: str) -> str:
    """Return what a kind of noise is.

    Examples
    --------
    >>> noise_in_words("student-2.5")
    "Student's t with 2.5 degrees of freedom"
    """
    kind, _, value = name.partition("-")
    return _NOISES.get(kind, name).format(value)
