"""The chapter of the report that shows the paper's experiment, and its sections in words."""

from stoic.reports.html import Html, element, joined, table, terms
from stoic.reports.page import Chapter
from stoic.reports.words import percent
from stoic.studies.paper import overview
from stoic.studies.paper.charts import charts_of
from stoic.studies.paper.comparison import choices
from stoic.studies.paper.headline import data_name, title
from stoic.studies.paper.results import Results
from stoic.studies.paper.runs import HOPELESS
from stoic.studies.paper.spec import Spec
from stoic.studies.paper.tables import FAILURE_HEAD, failure_rows
from stoic.studies.paper.words import SELECTED_BY, noise_in_words
from stoic.studies.shared.notes import configuration_section, fact, machine_section

_DRAWN = ("median", "mean square", "largest")


def chapter_of(results: Results, command: str) -> Chapter:
    """Return all that there is to show."""
    spec, charts = results.spec, charts_of(results)
    sections = {
        "figures": ("Test error against samples", overview.figures(results, charts)),
        "summary": ("Summary", overview.summary(results)),
        "grid": ("Grid of λ_reg and step size", overview.grid(results, charts)),
        "truncation": ("Truncation by stage", overview.truncation(results, charts)),
        "variants": ("Temperatures and losses", overview.variants(results, charts)),
        "data": ("Data and noise", _data(results)),
        "selection": ("Choice of λ_reg and step size", _selection(spec)),
        "paper": ("What the paper says, and what was chosen here", _paper(spec)),
        "machine": ("Seed, versions and machine", machine_section(results.facts, spec.seed)),
        "failures": ("Failed runs", _failures(results)),
        "configuration": ("Commands and settings", configuration_section(results.facts, spec, command)),
    }
    return Chapter("reproduced", title(spec), overview.headline(results), sections, charts, spec.methods)


def _data(results: Results) -> Html:
    """Return facts about the data and the noise."""
    spec = results.spec
    facts = {str(name): fact(value) for name, value in results.facts.get("data", {}).items()}
    known: dict[str, object] = {"data": data_name(spec), "source": spec.data, **facts}
    if not spec.noise:
        return joined([terms(known), element("p", "The labels were used as they are, without added noise.")])
    drawn = results.facts.get("noise", {})
    rows = []
    for name in spec.noise:
        found = drawn.get(name, {})
        rows.append([name, noise_in_words(name), *(fact(found.get(what, "–")) for what in _DRAWN)])
    note = (
        f"Each training row gets one of these kinds at random, and the kinds are the groups of the problem. "
        f"Sparse noise hits {percent(spec.sparse_share)} of its rows. Test labels are {spec.test_labels}. The "
        f"last columns are about the noise drawn for the grid; that of a trial is another draw of the same laws."
    )
    head = ("name", "noise", *_DRAWN)
    return joined([terms(known), table("Kinds of noise", head, rows), element("p", note, class_="note")])


def _selection(spec: Spec) -> Html:
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


def _paper(spec: Spec) -> Html:
    """Return the paper's protocol beside the one that ran."""
    rows = [
        [choice.what, choice.paper, choice.here, element("span" if choice.agrees else "strong", choice.verdict)]
        for choice in choices(spec)
    ]
    return table("The protocol", ("setting", "paper", "here", "comparison"), rows)


def _failures(results: Results) -> Html:
    """Return the runs that failed, with their reasons."""
    rows = list(failure_rows(results))
    if not rows:
        return element("p", "No run failed.")
    return table("Runs that failed", FAILURE_HEAD, rows)
