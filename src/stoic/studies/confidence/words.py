"""Words of a confidence study: names, numbers, and sentences that hold for any results."""

import math
from collections.abc import Sequence

from stoic.reports.palette import looks_of
from stoic.reports.words import counted, label, listed, number
from stoic.studies.confidence.methods import RIVALS
from stoic.studies.confidence.quantiles import Band
from stoic.studies.confidence.results import TailsResults

TITLE = "Confidence under heavy-tailed noise: quantiles of F(w) − F*"


def name_of(delta: float) -> str:
    """Return the name of the (1 − δ)-quantile.

    Examples
    --------
    >>> name_of(0.5), name_of(0.001)
    ('median', '0.999-quantile')
    """
    return "median" if delta == 0.5 else f"{1.0 - delta:g}-quantile"


def short(value: float) -> str:
    """Return a number with three digits, or as a whole number.

    Examples
    --------
    >>> short(0.00012345), short(0.00001234), short(12345.6), short(math.inf)
    ('0.000123', '1.23e-5', '12,346', '∞')
    """
    if not math.isfinite(value):
        return number(value)
    if 1e3 <= value < 1e5:
        return f"{value:,.0f}"
    digits, mark, exponent = f"{value:.3g}".partition("e")
    digits = digits.replace("-", "−")
    return f"{digits}e{int(exponent)}" if mark else digits


def in_words(band: Band | None) -> str:
    """Return a number with its band; a dash where there is none.

    Examples
    --------
    >>> in_words(Band(0.001234, 0.001, math.inf)), in_words(None)
    ('0.00123 [0.001, ∞]', '–')
    """
    return "–" if band is None else f"{short(band.value)} [{short(band.low)}, {short(band.high)}]"


def dashes_of(methods: Sequence[str]) -> dict[str, str]:
    """Return the dashes of lines: ours solid, rivals dashed, and dotted where another rival has the color.

    Examples
    --------
    >>> dashes_of(["rrosc-tracked", "rmscg", "asc-pg"])
    {'rrosc-tracked': 'solid', 'rmscg': 'dash', 'asc-pg': 'dash'}
    """
    looks, dashes, colors = looks_of(methods), {}, set()
    for name in methods:
        color = looks[name].light
        dashes[name] = "solid" if name not in RIVALS else "dot" if color in colors else "dash"
        colors |= {color} if name in RIVALS else set()
    return dashes


def what_was_run(results: TailsResults) -> str:
    """Describe the study in a sentence or two."""
    spec = results.spec
    words = (
        f"{listed([label(name) for name in spec.methods])} minimized a KL group DRO risk whose optimum is known, "
        f"{counted(spec.runs, 'run')} each with {spec.samples:,} fresh samples of each group, in "
        f"{counted(len(results.settings), 'setting')} of noise."
    )
    rivals = [label(name) for name in spec.methods if name in RIVALS]
    if not rivals:
        return words
    return (
        f"{words} {listed(rivals)} had the step size with the lowest 0.9-quantile of the gap over "
        f"{counted(spec.tune_runs, 'run')} of their own in each setting; the others chose theirs in each run."
    )


def unfinished(results: TailsResults) -> str:
    """Return a sentence on the runs that are missing; empty where none is."""
    if results.n_done == results.n_wanted:
        return ""
    return f"This study is not complete: {results.n_done:,} of {results.n_wanted:,} runs have ended."
