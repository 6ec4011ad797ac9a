"""Pieces of HTML, and of JSON for its charts; whatever is text is escaped here."""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from html import escape
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from stoic.reports.visible import visible

Chart: TypeAlias = dict[str, Any]
"""An id, a kind that the page's script can draw, and what that kind needs."""


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def inert(text: object) -> Html:
    """Return anything as HTML that shows it as it is, with λ_reg and ± set as in print.

    Signs that turn the direction of a line are written out; see `visible`.

    Examples
    --------
    >>> inert("a < b"), inert(Html("a <b>b</b>"))
    ('a &lt; b', 'a <b>b</b>')
    """
    return text if isinstance(text, Html) else Html(_typeset(escape(visible(text, kept="\n\t"))))


def _typeset(text: str) -> str:
    return text.replace("λ_reg", "λ<sub>reg</sub>").replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


def element(tag: str, /, *content: object, **attributes: object) -> Html:
    """Return an element; underscores in names of attributes stand for dashes, and are dropped at the end.

    Examples
    --------
    >>> element("p", "1 < 2", class_="lead", aria_label="x")
    '<p class="lead" aria-label="x">1 &lt; 2</p>'
    """
    return Html(f"<{tag}{_attributes(attributes)}>{''.join(inert(part) for part in content)}</{tag}>")


def _attributes(pairs: Mapping[str, object]) -> str:
    return "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(visible(text))}"' for key, text in pairs.items()
    )


def joined(parts: Iterable[Html]) -> Html:
    """Return pieces one after the other."""
    return Html("\n".join(parts))


def table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    best: Sequence[int] = (),
    numbers: Container[int] = (),
) -> Html:
    """Return a table in a box that scrolls sideways by itself; the first column holds the names of the rows.

    Parameters
    ----------
    caption : str
    head : sequence of str
    rows : iterable of sequences
    best : sequence of int
        Rows to set off.
    numbers : container of int
        Columns of numbers, which are set flush right.
    """
    top = element("tr", *(_cell("th", name, j in numbers, scope="col") for j, name in enumerate(head)))
    body = [_row(row, numbers, is_best=place in best) for place, row in enumerate(rows)]
    content = element("caption", caption), element("thead", top), element("tbody", *body)
    return element(
        "div", element("table", *content), class_="scroll", tabindex=0, role="region", aria_label=caption
    )


def _cell(tag: str, content: object, is_number: bool, **attributes: object) -> Html:
    return element(tag, content, **attributes, **({"class_": "number"} if is_number else {}))


def _row(row: Sequence[object], numbers: Container[int], *, is_best: bool) -> Html:
    cells = (_cell("td", cell, j in numbers) for j, cell in enumerate(row[1:], 1))
    first = element("th", row[0], scope="row")
    return element("tr", first, *cells, class_="best") if is_best else element("tr", first, *cells)


def terms(pairs: Mapping[str, object]) -> Html:
    """Return names with what they stand for."""
    return element(
        "dl", *(element("div", element("dt", name), element("dd", text)) for name, text in pairs.items())
    )


def switch(title: str, name: str, choices: Mapping[str, str], chosen: str | None = None) -> Html:
    """Return radio buttons, one of them checked, by default the first; keys are values, texts what is shown."""
    labels = []
    for value, text in choices.items():
        checked = {"checked": ""} if value == (chosen or next(iter(choices))) else {}
        pairs = {"type": "radio", "name": name, "value": value, **checked}
        labels.append(element("label", Html(f"<input{_attributes(pairs)}>"), element("span", text)))
    return element("fieldset", element("legend", title), element("div", *labels, class_="segments"))


def menu(title: str, name: str, choices: Mapping[str, str]) -> Html:
    """Return a menu, its first entry chosen; keys are values, texts what is shown."""
    options = (element("option", text, value=value) for value, text in choices.items())
    return element(
        "label", element("span", title, class_="title"), element("select", *options, name=name), class_="menu"
    )


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
