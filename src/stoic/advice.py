"""What a result's message says about truncation, where it looks wrong."""

from collections.abc import Sequence

import numpy as np

from stoic.protocols import Vector
from stoic.result import Record

NEARLY_ALWAYS = 0.5
_FEWEST_RECORDS = 8
_NAMES = {"truncated_y": "values y", "truncated_z": "Jacobians z"}


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
