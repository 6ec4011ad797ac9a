"""The paper's protocol beside ours: settings that agree, that differ, or that the paper leaves open."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stoic.datasets.noise import NOISES
from stoic.reports.palette import PAPER_METHODS
from stoic.reports.words import label, listed, percent
from stoic.studies.paper.headline import data_name
from stoic.studies.paper.spec import DECADES, Spec
from stoic.studies.paper.words import SELECTED_BY, power

OPEN = "not said"


class Choice(NamedTuple):
    """A setting of the protocol: what the paper says about it, and what ran."""

    what: str
    paper: str
    here: str
    agrees: bool

    @property
    def verdict(self) -> str:
        """The comparison of the two, in words."""
        if self.paper == OPEN:
            return "chosen here"
        return "as in the paper" if self.agrees else "differs"


def choices(spec: Spec) -> Iterator[Choice]:
    """Yield the settings of the protocol."""
    yield from _of_the_data(spec)
    yield from _of_the_problem(spec)
    yield from _of_the_runs(spec)


def _of_the_data(spec: Spec) -> Iterator[Choice]:
    is_scaled = spec.data == "e2006-like" and spec.size != 1.0
    made = data_name(spec) + (f", {spec.size:g} times its size" if is_scaled else "")
    yield Choice("data", "E2006, its own training and test rows", made, spec.data == "e2006")
    noise = listed(list(spec.noise)) or "none"
    kinds = "Pareto with tail 1.01 and 2.01, Student's t with 2.5 and 5 degrees of freedom, sparse up to 5 and 10"
    yield Choice("noise of the labels, a kind per row", kinds, noise, set(spec.noise) == set(NOISES))
    yield Choice("rows that sparse noise hits", OPEN, percent(spec.sparse_share), agrees=True)
    tested = "none" if spec.test_labels == "clean" else "as in training"
    yield Choice("noise on the test labels", OPEN, tested, agrees=True)


def _of_the_problem(spec: Spec) -> Iterator[Choice]:
    yield Choice("loss", "squared", listed(list(spec.losses)), spec.losses[0] == "squared")
    temperatures = listed([f"{value:g}" for value in spec.temperatures])
    yield Choice("temperature, λ in (7)", OPEN, temperatures, agrees=True)
    both = set(spec.regularizers) == {"l1", "l2"}
    yield Choice("regularizers", "L1 and L2", listed([label(name) for name in spec.regularizers]), both)


def _of_the_runs(spec: Spec) -> Iterator[Choice]:
    methods = listed([label(name) for name in spec.methods])
    paper = "RROSC, RMSCG (not robust), ASC-PG and RCIVR"
    yield Choice("methods", paper, methods, set(spec.methods) >= set(PAPER_METHODS))
    grid = f"{power(DECADES[0])}, …, {power(DECADES[-1])}"
    yield Choice("λ_reg", grid, _grid(spec.alphas), set(spec.alphas) == set(DECADES))
    yield Choice("step size", grid, _grid(spec.steps), set(spec.steps) == set(DECADES))
    yield Choice("radius D of RROSC", "100", f"{spec.radius:g}", spec.radius == 100.0)
    yield Choice("batch size", OPEN, str(spec.batch_size), agrees=True)
    yield Choice("stages", OPEN, str(spec.n_stages), agrees=True)
    yield Choice("samples of a run", OPEN, f"{spec.budget:,}", agrees=True)
    share = spec.validation_share == 0.1
    yield Choice("training rows set aside for validation", "10 %", percent(spec.validation_share), share)
    yield Choice("validation errors are reduced to", OPEN, f"their {SELECTED_BY[spec.selection]}", agrees=True)
    yield Choice("trials with fresh noise", "5", str(spec.trials), spec.trials == 5)


def _grid(values: Sequence[float]) -> str:
    names = [power(value) for value in sorted(values)]
    if len(names) <= 6:
        return ", ".join(names)
    span = f"{names[0]}, …, {names[-1]}"
    return span if set(values) == set(DECADES) else f"{span} ({len(names)} values)"
