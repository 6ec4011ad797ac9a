"""The gate for labels in pictures: names of strangers, drawn by matplotlib as they are."""

from stoic.reports.visible import shortened, visible
from stoic.reports.words import label

_MOST_SIGNS = 40


def picture_label(name: object) -> str:
    r"""Return a name as matplotlib is to be given it.

    Dollars are no formula, a legend drops no label for its leading underscore, signs that steer are written out,
    and of a very long name the middle is left out.

    Examples
    --------
    >>> print(picture_label("$10k-$20k"), picture_label("two\nlines"))
    \$10k-\$20k two\nlines
    >>> picture_label("_other")
    ' _other'
    """
    text = shortened(visible(name), _MOST_SIGNS)
    if text.startswith("_"):  # to matplotlib, a line that is not for the legend
        text = f" {text}"
    return text.replace("$", r"\$")


def method_label(name: str) -> str:
    """Return the name of a method or regularizer as the paper writes it, for a picture."""
    return picture_label(label(name))
