"""Charts of a report: what they draw, as plain data, and where they are drawn."""

import json
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from stoic.reports.html import Html, element

Chart: TypeAlias = dict[str, Any]
"""An id, a kind that the page's script can draw, and what that kind needs."""


def finite(values: ArrayLike) -> list[float | None]:
    """Return numbers with as many digits as a chart can show; None for those that are not finite."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in np.asarray(values, dtype=float)]


def as_json(data: Any) -> str:
    r"""Return JSON that can stand in a script element, since no sign in it can end the element.

    Examples
    --------
    >>> as_json({"a": "</script>"})
    '{"a":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def figure_of(heading: str, chart: Chart, about: str) -> Html:
    """Return the place where a chart is drawn, with a heading, its legend, and words for who cannot see it."""
    return element(
        "figure",
        element("figcaption", heading),
        element("div", class_="legend", data_for=chart["id"]),
        element("div", id=chart["id"], class_=f"chart {chart['kind']}", role="img", aria_label=about),
    )
