"""Sections that every chapter of a report has: the machine, and the configuration."""

from collections.abc import Mapping
from typing import Any

from stoic.reports.html import Html, element, joined, terms
from stoic.reports.words import listed
from stoic.studies.shared.settings import StudySettings, as_toml


def fact(value: Any) -> object:
    """Return a fact for a reader; what it is made of may be any text."""
    if isinstance(value, Mapping):
        return element("ul", *(element("li", f"{name}: ", fact(part)) for name, part in value.items()))
    if isinstance(value, list):
        return listed([str(part) for part in value])
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value


def machine_section(facts: Mapping[str, Any], seed: int) -> Html:
    """Return the seed, versions and the machine."""
    found = {str(name): fact(value) for name, value in facts.get("machine", {}).items()}
    versions = {str(name): fact(value) for name, value in facts.get("versions", {}).items()}
    note = (
        "All random numbers come from the seed and from the name of the run that uses them; they do not depend on "
        "the order of the runs or on the number of processes."
    )
    return joined(
        [
            terms({"seed": seed}),
            element("p", note, class_="note"),
            element("div", _list("Versions", versions), _list("Machine", found), class_="columns"),
        ]
    )


def _list(heading: str, pairs: Mapping[str, object]) -> Html:
    content = terms(pairs) if pairs else element("p", "Not recorded.")
    return element("div", element("h3", heading), content)


def configuration_section(facts: Mapping[str, Any], settings: StudySettings, command: str) -> Html:
    """Return the commands and the settings, which a TOML file can hold."""
    made = facts.get("command")
    return joined(
        [
            element("h3", "Made by"),
            element("pre", element("code", made), tabindex=0) if made else element("p", "Not recorded."),
            element("h3", "Drawn again by"),
            element("pre", element("code", command), tabindex=0),
            element("h3", "All settings"),
            element("pre", element("code", as_toml(settings)), tabindex=0),
        ]
    )
