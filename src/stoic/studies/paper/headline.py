"""Sentences on the experiment and its findings, which hold for any results."""

import math
from collections.abc import Iterator
from pathlib import Path

from stoic.reports.words import counted, label, listed, number, plus_minus
from stoic.studies.paper.results import Results
from stoic.studies.paper.runs import grid_of
from stoic.studies.paper.spec import Spec
from stoic.studies.paper.summary import SummaryLine, Verdict, lines_of, verdicts

_DATA = {"e2006-like": "synthetic data in the shape of E2006", "e2006": "the E2006 data"}


_HEAVY = ("pareto", "student")


def data_name(spec: Spec) -> str:
    """Return the data in words, or the name of their file."""
    return _DATA.get(spec.data, Path(spec.data).name)


def title(spec: Spec) -> str:
    """Return the title of the experiment."""
    kind = "heavy-tailed " if any(name.startswith(_HEAVY) for name in spec.noise) else ""
    return f"Test error {f'under {kind}noise' if spec.noise else 'of group DRO'}: {data_name(spec)}"


def what_was_run(spec: Spec) -> str:
    """Return one sentence on the experiment."""
    methods, losses = listed([label(name) for name in spec.methods]), listed(list(spec.losses))
    untuned = f" ({label('auto')}: λ_reg only, the rest is untuned)" if "auto" in spec.methods else ""
    noise = (
        f"{counted(len(spec.noise), 'kind')} of noise on the labels" if spec.noise else "the labels as they are"
    )
    pairs = counted(len(spec.alphas) * len(spec.steps), "pair")
    return (
        f"{methods} solved KL group DRO with {losses} loss on {data_name(spec)} with {noise}; each solve drew "
        f"{spec.budget:,} samples, λ_reg and the step size were chosen by the error on validation rows among "
        f"{pairs}{untuned}, and {counted(spec.trials, 'trial')} with fresh {'noise' if spec.noise else 'draws'} "
        f"measured the error on {spec.test_labels} test labels."
    )


def what_came_out(results: Results) -> Iterator[tuple[str, str]]:
    """Yield a regularizer and who is ahead with it, for each regularizer."""
    for verdict in verdicts(results):
        yield label(verdict.regularizer), _in_words(verdict)


def _in_words(verdict: Verdict) -> str:
    lowest, steadiest = verdict.lowest, verdict.steadiest
    if lowest is None:
        start = "No method has a finite mean." if verdict.without_mean else "No trial has ended yet."
        return " ".join([start, *map(_no_mean, verdict.without_mean)])
    words = [f"{_method(lowest)} has the lowest mean test MSE, {_mse(lowest)}{_runner_up(lowest, verdict.next)}."]
    if steadiest is None:
        words.append("With a single trial there is no standard deviation.")
    elif steadiest is lowest:
        words.append(f"{_method(lowest)} also has the smallest standard deviation.")
    else:
        words.append(f"The smallest standard deviation is that of {_method(steadiest)}, {_mse(steadiest)}.")
    return " ".join([*words, *map(_no_mean, verdict.without_mean)])


def _runner_up(lowest: SummaryLine, following: SummaryLine | None) -> str:
    if following is None:
        return ""
    words = f"; {_method(following)} follows with {_mse(following)}"
    widest = max(lowest.deviation, following.deviation)
    if math.isfinite(widest) and following.mean - lowest.mean < widest:
        words += ", less than one standard deviation away"
    return words


def _no_mean(line: SummaryLine) -> str:
    if line.diverged:
        return f"{_method(line)} diverged in {line.diverged} of {line.ended} trials and has no finite mean."
    return f"{_method(line)} ended with an infinite error in some trial and has no finite mean."


def _method(line: SummaryLine) -> str:
    return label(line.setting.method)


def _mse(line: SummaryLine) -> str:
    return plus_minus(line.mean, line.deviation) if math.isfinite(line.deviation) else number(line.mean)


def against_the_paper(results: Results) -> str:
    """Return whether the paper's finding is found again; empty where that cannot be said."""
    found = list(verdicts(results))
    if "rrosc" not in results.spec.methods or len(results.spec.methods) < 2 or unfinished(results):
        return ""
    if any(verdict.lowest is None or verdict.steadiest is None for verdict in found):
        return ""
    holds = [label(verdict.regularizer) for verdict in found if _leads("rrosc", verdict)]
    if not holds:
        here = "Here neither regularizer shows both" if len(found) > 1 else "Here it is not both"
    else:
        here = f"Here that is so with {listed(holds)}" + (" only" if len(holds) < len(found) else "")
    return f"The paper finds RROSC both lowest in error and steadiest. {here}."


def _leads(method: str, verdict: Verdict) -> bool:
    ahead = verdict.lowest, verdict.steadiest
    return all(line is not None and line.setting.method == method for line in ahead)


def unfinished(results: Results) -> str:
    """Return a sentence on the runs that are missing; empty where none is."""
    spec = results.spec
    cells, there = len(list(grid_of(spec))), len(results.grid)
    if there < cells:
        return f"This experiment is not complete: {there:,} of {cells:,} cells of the grid have ended."
    lines = lines_of(results, spec.selection)
    missing = sum(line.missing for line in lines)
    wanted = sum(spec.trials for line in lines if line.cell is not None)
    if missing:
        return f"This experiment is not complete: {wanted - missing:,} of {wanted:,} trials have ended."
    return ""
