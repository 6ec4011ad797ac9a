"""Advice in a result's message, beyond its status: what went wrong, what is left, what to change."""

from collections.abc import Sequence

import numpy as np

from stoic.protocols import Vector
from stoic.solve.hindsight import Outlook
from stoic.solve.result import Record

NEARLY_ALWAYS = 0.5
_FEWEST_RECORDS = 8
_NAMES = {"truncated_y": "values y", "truncated_z": "Jacobians z"}


STEPS_ADVICE = (
    "Give more steps, n_steps=…, or a smoother problem: a higher temperature, a wider loss, columns of like scale."
)
STUCK_ADVICE = "No step along the derivatives lowers the objective: check the signs of the derivatives."
_WORTH_SAYING = 0.01  # of the way down: what is left


def cut_advice(needed: int | None) -> str:
    """Return the budget that a plan needs, as advice; `needed` is None where that is not known."""
    if needed is None:
        return "Use a larger budget."
    return f"The plan needs {needed} samples: use budget >= {needed}, or a shorter plan."


def divergence_advice(outlook: Outlook) -> str:
    """Return advice where the iterates diverged, or the answer is above the start."""
    if outlook.risen == 0.0:
        return "Use a smaller step size, or rescale the data so that losses stay far below 1e300."
    return (
        f"The objective at the answer is {outlook.risen:.2g} above that at the start: check the signs of the "
        "derivatives, use a smaller step size, or, with more variables than samples, a larger budget or penalty."
    )


def progress_advice(outlook: Outlook) -> str:
    """Return how far the objective can still fall, where that is a hundredth of the whole way down or more.

    Examples
    --------
    >>> from stoic.solve.hindsight import Outlook
    >>> progress_advice(Outlook(fallen=3.0, moved=0.5, left=1.0)).split(":")[0]
    'The answer still moves'
    >>> progress_advice(Outlook(fallen=3.0, moved=0.5, left=0.01))
    ''
    """
    if outlook.share_left < _WORTH_SAYING:
        return ""
    state = "still moves" if outlook.moved > 0.0 else "is not at an optimum"
    way = f"has fallen by {outlook.fallen:.2g}" if outlook.fallen > 0.0 else "is no lower than at the start"
    return (
        f"The answer {state}: on draws that were kept aside, the objective {way}, and about {outlook.left:.2g} is "
        f"left, {outlook.share_left:.0%} of the way; use a larger budget, a start that is closer, or columns of "
        "like scale."
    )


def truncation_advice(history: Sequence[Record]) -> str:
    """Return a sentence for each estimate that was truncated nearly always, or ever more often; else nothing.

    A method that works truncates a few percent of its samples under heavy tails, fewer from stage to stage. The
    last quarter of the samples counts; it is a drift where its share is above 5 %, and three times that of the two
    quarters before.

    Examples
    --------
    >>> calm = [{"samples": k, "truncated_y": 0.02, "truncated_z": 0.0} for k in range(1, 9)]
    >>> truncation_advice(calm)
    ''
    >>> truncation_advice([{**record, "truncated_z": 0.9} for record in calm]).split(":")[0]
    'The Jacobians z were truncated in 90% of the samples at the end'
    """
    if not history:
        return ""
    samples = np.array([record["samples"] for record in history], dtype=float)
    sentences = []
    for key, name in _NAMES.items():
        shares = np.array([record[key] for record in history], dtype=float)
        end, before = _share(samples, shares, 0.75, 1.0), _share(samples, shares, 0.25, 0.75)
        if end > NEARLY_ALWAYS:
            sentences.append(
                f"The {name} were truncated in {end:.0%} of the samples at the end: the answer follows the "
                f"reference more than the data; give levels with a larger slack, or a larger clip."
            )
        elif len(history) >= _FEWEST_RECORDS and end > max(0.05, 3.0 * before):
            sentences.append(
                f"The {name} were truncated ever more often, in {before:.1%} of the samples and then in "
                f"{end:.1%}: the data may drift, or C_g or L_g of the levels is too small."
            )
    return " ".join(sentences)


def _share(samples: Vector, shares: Vector, start: float, end: float) -> float:
    """Return the share between two parts of all samples."""
    weights = np.diff(samples, prepend=0.0)
    chosen = (samples > start * samples[-1]) & (samples <= end * samples[-1])
    total = float(weights[chosen].sum())
    return float((weights * shares)[chosen].sum()) / total if total > 0.0 else 0.0
