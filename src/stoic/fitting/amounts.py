"""Errors as a table writes them: all with the same decimals, shares as percentages."""

import math
from dataclasses import dataclass

_DIGITS = 4  # of the mean error over all rows
_MANY = 7  # digits before the point from which on numbers are written with a power of ten


@dataclass(frozen=True)
class Amounts:
    """How errors are written.

    Parameters
    ----------
    decimals : int or None
        None: a power of ten, with four digits.
    is_share : bool
        Whether they are shares, written as percentages.
    """

    decimals: int | None
    is_share: bool = False

    @classmethod
    def like(cls, typical: float, *, is_share: bool = False) -> "Amounts":
        """Return a way to write numbers of a typical size with four digits, or shares with one decimal."""
        if is_share:
            return cls(1, is_share=True)
        if not (math.isfinite(typical) and typical > 0.0):
            return cls(None)
        before = math.floor(math.log10(typical)) + 1
        return cls(max(0, _DIGITS - before) if -_DIGITS < before <= _MANY else None)

    def error(self, value: float) -> str:
        """Return an error.

        Examples
        --------
        >>> Amounts.like(24.381).error(1024.381), Amounts(1, is_share=True).error(0.1234)
        ('1,024.38', '12.3 %')
        """
        return f"{self.bare(value)} %" if self.is_share else self.bare(value)

    def bare(self, value: float) -> str:
        """Return an error without its sign of percent."""
        if not math.isfinite(value):
            return "–"
        scaled = 100.0 * value if self.is_share else value
        return f"{scaled:.3e}" if self.decimals is None else f"{scaled:,.{self.decimals}f}"

    def amount(self, difference: float) -> str:
        """Return the size of a difference; of shares in points.

        Examples
        --------
        >>> Amounts(1, is_share=True).amount(-0.0123)
        '1.2 points'
        """
        size = self.bare(abs(difference))
        return f"{size} points" if self.is_share else size

    def signed(self, difference: float, half_width: float) -> str:
        """Return a difference with its sign, and half the width of its interval.

        Examples
        --------
        >>> Amounts(2).signed(-0.104, 0.021), Amounts(2).signed(0.0, 0.0)
        ('-0.10 ± 0.02', '0.00 ± 0.00')
        """
        text = self.bare(difference)
        is_zero = not any(sign in "123456789" for sign in text)
        sign = "" if is_zero or difference < 0.0 or not math.isfinite(difference) else "+"
        return f"{sign}{text.lstrip('-') if is_zero else text} ± {self.bare(half_width)}"
