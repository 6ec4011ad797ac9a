"""Words and numbers as tables, figures and pages write them."""

import math
from collections.abc import Sequence


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
