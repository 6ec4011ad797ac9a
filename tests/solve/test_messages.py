"""What the message says about truncation, and when."""

import numpy as np
import pytest

import stoic
from catalog import CASES
from stoic.solve.messages import truncation_advice

PROBLEM = CASES["logsumexp-l2"].problem


def history(shares, key="truncated_z", every=100):
    calm = {"truncated_y": 0.0, "truncated_z": 0.0}
    return [{**calm, "samples": every * (k + 1), key: share} for k, share in enumerate(shares)]


@pytest.mark.parametrize(
    "shares",
    [
        [],
        [0.0] * 10,
        [0.9] * 5 + [0.05] * 5,  # the start is rough, the end is what counts
        [0.01] * 7 + [0.04] * 3,  # a rise among few
        [0.3] * 10,  # many, but no more than before
        [0.0, 0.4],  # too few records to call it a drift
    ],
)
def test_usual_shares_are_not_worth_a_word(shares):
    assert truncation_advice(history(shares)) == ""


@pytest.mark.parametrize(("key", "name"), [("truncated_y", "values y"), ("truncated_z", "Jacobians z")])
def test_nearly_always_and_ever_more_often_are_said_of_what_it_concerns(key, name):
    always = truncation_advice(history([0.0] * 6 + [0.8] * 4, key))
    assert always.startswith(f"The {name} were truncated in 80% of the samples at the end")
    assert "larger slack" in always
    drifting = truncation_advice(history([0.02] * 9 + [0.3] * 3, key))
    assert drifting.startswith(
        f"The {name} were truncated ever more often, in 2.0% of the samples and then in 30.0%"
    )


def test_shares_are_weighed_by_samples():
    """One long record without truncation outweighs two short ones with."""
    records = [
        *history([0.0] * 8),
        *({"samples": 801 + k, "truncated_y": 0.0, "truncated_z": 1.0} for k in range(2)),
    ]
    assert truncation_advice(records) == ""


def test_levels_that_are_too_tight_are_said_in_the_message():
    tight = stoic.RROSC(levels=stoic.Levels(0.0, 0.0, 1e-9, 1e-9))
    result = stoic.minimize(PROBLEM, tight, budget=20_000, seed=0)
    assert "The values y were truncated in 100% of the samples at the end" in result.message
    assert "The Jacobians z were truncated in 100%" in result.message


@pytest.mark.parametrize("method", ["auto", "rrosc", "rrosc-growing", "mscg"])
def test_the_defaults_give_no_reason_for_advice(method):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 4))
    y = X @ np.ones(4) + rng.standard_t(2.5, 4000)
    problem = stoic.Problem(stoic.GroupLoss(X, y, np.arange(4000) % 4), stoic.LogSumExp(1.0))
    message = stoic.minimize(problem, method, budget=40_000, seed=0).message
    assert message.endswith("samples.")
    assert "truncated" not in message
