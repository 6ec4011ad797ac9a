"""The gate for names and other text of strangers: what would steer a terminal or turn a line is written out."""

import re
import unicodedata

_STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # controls, marks of direction, halves of signs, ends of lines
_JOINERS = "\u200c\u200d"  # within words of Persian and Hindi, and in emoji
_PLAIN = re.compile(r"[ -~]*")


def visible(text: object, *, kept: str = "") -> str:
    r"""Return text on which a terminal does nothing but show it: other signs stand there as Python writes them.

    Parameters
    ----------
    text : object
    kept : str, optional
        Signs to leave as they are, such as line ends in a text of several lines.

    Examples
    --------
    >>> print(visible("Köln\x1b[2J \u202eevil"))
    Köln\x1b[2J \u202eevil
    """
    words = str(text)
    if _PLAIN.fullmatch(words):
        return words
    return "".join(sign if sign in kept or not _steers(sign) else _written_out(sign) for sign in words)


def shortened(text: str, most: int) -> str:
    """Return text of at most so many signs, with a gap in its middle: names often differ at their ends.

    Examples
    --------
    >>> shortened("a name that is very long indeed", 12)
    'a name…ndeed'
    """
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[-end:]}"


def _steers(sign: str) -> bool:
    return unicodedata.category(sign) in _STEERING and sign not in _JOINERS


def _written_out(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")
