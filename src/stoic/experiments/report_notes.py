"""The second half of the report, as HTML: data, rules, machine, failures and configuration."""

from collections.abc import Mapping
from typing import Any

from stoic.experiments.headline import data_name
from stoic.experiments.markup import Html, element, joined, table, terms
from stoic.experiments.protocol import choices
from stoic.experiments.results import Results
from stoic.experiments.runs import HOPELESS
from stoic.experiments.settings import Settings, as_toml
from stoic.experiments.spec import Spec
from stoic.experiments.tables import failure_rows
from stoic.experiments.wording import SELECTED_BY, listed, noise_in_words, percent

_DRAWN = ("median", "mean square", "largest")


def data(results: Results) -> Html:
    """Return what is known about the data and the noise."""
    spec = results.spec
    facts = {str(name): _value(value) for name, value in results.facts.get("data", {}).items()}
    known: dict[str, object] = {"data": data_name(spec), "source": spec.data, **facts}
    if not spec.noise:
        return joined([terms(known), element("p", "The labels were used as they are, without added noise.")])
    drawn = results.facts.get("noise", {})
    rows = [[name, noise_in_words(name), *map(_value, _drawn(drawn.get(name, {})))] for name in spec.noise]
    note = (
        f"Each training row gets one of these kinds at random, and the kinds are the groups of the problem. "
        f"Sparse noise hits {percent(spec.sparse_share)} of its rows. Test labels are {spec.test_labels}. The "
        f"last columns are about the noise drawn for the grid; that of a trial is another draw of the same laws."
    )
    head = ("name", "noise", *_DRAWN)
    return joined([terms(known), table("Kinds of noise", head, rows), element("p", note, class_="note")])


def _drawn(facts: Mapping[str, Any]) -> list[Any]:
    return [facts.get(name, "–") for name in _DRAWN]


def _value(value: Any) -> object:
    """Return a fact for a reader; what it is made of may be any text."""
    if isinstance(value, Mapping):
        return element("ul", *(element("li", f"{name}: ", _value(part)) for name, part in value.items()))
    if isinstance(value, list):
        return listed([str(part) for part in value])
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value


def selection(spec: Spec) -> Html:
    """Return the rule of selection in words."""
    other = "robust" if spec.selection == "plain" else "plain"
    texts = (
        f"Each pair of λ_reg and a step size was run once, on the training rows without the "
        f"{percent(spec.validation_share)} set aside for validation, all with the same noise. The trials use the "
        f"pair with the smallest {SELECTED_BY[spec.selection]} of the squared errors on the validation rows; of "
        f"equal ones that with the smaller step, then with the larger λ_reg. Validation labels are as noisy as "
        f"the others.",
        f"Runs that diverged, failed, or were given up because a quarter of the samples had left the error above "
        f"{HOPELESS:,.0f} times that of the zero model are not chosen. Trials then use all training rows, each "
        f"with noise of its own that all methods share.",
        f"The {SELECTED_BY[other]} of the squared errors is the other way of selection; its cells were run as "
        f"well, and are in the summary and in results.csv.",
    )
    return joined([element("p", text) for text in texts])


def paper(spec: Spec) -> Html:
    """Return the paper's protocol beside the one that ran."""
    rows = [
        [choice.what, choice.paper, choice.here, element("span" if choice.agrees else "strong", choice.verdict)]
        for choice in choices(spec)
    ]
    return table("The protocol", ("setting", "paper", "here", "comparison"), rows)


def machine(facts: Mapping[str, Any], seed: int) -> Html:
    """Return the seed, versions and the machine."""
    found = {str(name): _value(value) for name, value in facts.get("machine", {}).items()}
    versions = {str(name): _value(value) for name, value in facts.get("versions", {}).items()}
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


def failures(results: Results) -> Html:
    """Return the runs that failed, with their reasons."""
    rows = list(failure_rows(results))
    if not rows:
        return element("p", "No run failed.")
    return table("Runs that failed", ("method", "problem", "runs", "λ_reg × step", "reason"), rows)


def configuration(facts: Mapping[str, Any], settings: Settings, command: str) -> Html:
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
