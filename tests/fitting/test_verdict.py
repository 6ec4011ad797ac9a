"""The sentence on a fit, from made measurements: it says what they show, and nothing that chance explains."""

from dataclasses import replace

import pytest

from stoic.fitting.amounts import Amounts
from stoic.fitting.verdict import Change, Evidence, verdict

N = 1000
GOOD = Change("all rows", 30.0, 24.0, 0.1, N)


def mean(before, after, error=0.05):
    return Change("all rows", before, after, error, N)


def group(name, before, after, error=0.1, rows=200):
    return Change(name, before, after, error, rows)


def seen(whole, *groups, constant=GOOD, **more):
    about = Amounts(1), "mean absolute error"
    return Evidence("regret DRO", "the average over rows", whole, groups, constant, *about, **more)


CASES = {
    "the worst group gains at a price": (
        seen(mean(24.3, 24.5), group("EV", 29.1, 28.6), group("AA", 20.0, 20.1)),
        "Regret DRO takes the worst group (EV) from 29.1 to 28.6, and costs 0.2 on average.",
    ),
    "at no price": (
        seen(mean(24.3, 24.3), group("EV", 29.1, 28.6), group("AA", 20.0, 20.1)),
        "Regret DRO takes the worst group (EV) from 29.1 to 28.6, and on average changes no more than chance.",
    ),
    "all gain": (
        seen(mean(24.3, 24.0), group("EV", 29.1, 28.6), group("AA", 20.0, 20.1)),
        "Regret DRO takes the worst group (EV) from 29.1 to 28.6, and gains 0.3 on average.",
    ),
    "another is then the worst": (
        seen(mean(24.3, 24.3), group("EV", 29.1, 26.6), group("9E", 28.0, 28.1)),
        "Regret DRO takes the worst group (EV) from 29.1 to 26.6 (the worst is then 9E with 28.1), and on average "
        "changes no more than chance.",
    ),
    "a calm group gains": (
        seen(mean(24.3, 24.5), group("EV", 29.1, 29.2), group("west", 12.0, 9.9)),
        "Regret DRO takes west, the group that it helps most, from 12.0 to 9.9, changes the worst group (EV) "
        "by no "
        "more than chance, and costs 0.2 on average.",
    ),
    "and the worst pays": (
        seen(mean(24.3, 24.5), group("EV", 29.1, 30.2), group("west", 12.0, 9.9)),
        "Regret DRO takes west, the group that it helps most, from 12.0 to 9.9, takes the worst group (EV), "
        "which pays most, from 29.1 to 30.2, and costs 0.2 on average.",
    ),
    "and the worst pays less than another": (
        seen(mean(24.3, 24.5), group("EV", 29.1, 30.2), group("AA", 20.0, 22.0), group("west", 12.0, 9.9)),
        "Regret DRO takes west, the group that it helps most, from 12.0 to 9.9, takes AA, which pays most, from "
        "20.0 to 22.0, takes the worst group (EV) from 29.1 to 30.2, and costs 0.2 on average.",
    ),
    "only costs": (
        seen(mean(24.3, 24.5), group("EV", 29.1, 29.2), group("AA", 20.0, 20.1)),
        "The average over rows serves better: regret DRO costs 0.2 on average, and no group gains beyond chance.",
    ),
    "the worst gets worse": (
        seen(mean(24.3, 24.5), group("EV", 29.1, 30.2), group("AA", 20.0, 20.1)),
        "The average over rows serves better: regret DRO costs 0.2 on average and takes the worst group (EV) "
        "from 29.1 "
        "to 30.2, and no group gains beyond chance.",
    ),
    "chance": (
        seen(mean(24.3, 24.35), group("EV", 29.1, 29.0), group("AA", 20.0, 20.1)),
        "The differences are within chance: the average over rows serves as well.",
    ),
    "certain but small": (
        seen(mean(24.3, 24.32, 0.001), group("EV", 29.1, 29.0, 0.01), group("AA", 20.0, 20.05, 0.01)),
        "No difference beyond chance is above 0.5 % of an error: the average over rows serves as well.",
    ),
    "the mean alone gains": (
        seen(mean(24.3, 24.0), group("EV", 29.1, 29.0), group("AA", 20.0, 19.9)),
        "Beside the average over rows, regret DRO gains 0.3 on average; no group changes beyond chance.",
    ),
    "better by no more than chance": (
        seen(mean(24.3, 24.5), group("EV", 29.1, 28.6), constant=mean(25.0, 24.5, 0.4)),
        "Better than a constant by no more than chance (mean absolute error 24.5 against 25.0): 1,000 test rows "
        "do not show that the columns explain the target.",
    ),
    "a simpler fit is better than a constant": (
        seen(mean(23.3, 24.5), group("EV", 29.1, 29.1), constant=mean(24.5, 24.5), is_explained=True),
        "The average over rows serves better: regret DRO costs 1.2 on average, and no group gains beyond chance.",
    ),
    "no better than a constant": (
        seen(mean(24.3, 24.5), group("EV", 29.1, 28.6), constant=mean(24.5, 24.5)),
        "No better than a constant (mean absolute error 24.5 against 24.5): 1,000 test rows do not show that the "
        "columns explain the target.",
    ),
    "worse than a constant": (
        seen(mean(24.3, 26.0), group("EV", 29.1, 28.6), constant=mean(24.5, 26.0), advice="; take it"),
        "Worse than a constant (mean absolute error 26.0 against 24.5); take it.",
    ),
    "one group": (
        replace(seen(mean(24.3, 24.3)), other=""),
        "The fit has a mean absolute error of 24.0 against 30.0 for a constant; there are no groups to compare.",
    ),
    "groups of few rows, and worse than a simpler fit": (
        seen(mean(24.3, 24.9), constant=mean(24.6, 24.9), is_explained=True),
        "Beside the average over rows, regret DRO costs 0.6 on average; the groups have too few test rows to be "
        "compared.",
    ),
    "no groups, and no better than a constant": (
        replace(seen(mean(24.3, 24.3), constant=mean(24.0, 24.9, 0.1), is_explained=True), other=""),
        "Worse than a constant (mean absolute error 24.9 against 24.0).",
    ),
    "groups of few rows": (
        seen(mean(24.3, 24.3)),
        "The fit has a mean absolute error of 24.0 against 30.0 for a constant; the groups have too few test "
        "rows to be "
        "compared.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_sentence_says_what_was_measured(case):
    evidence, sentence = CASES[case]
    assert verdict(evidence) == sentence


def test_a_fit_that_is_the_average_is_judged_by_what_could_be_had_in_its_place():
    why = "The fit is the average over rows, as asked"
    same = seen(mean(24.3, 24.3), group("EV", 29.1, 29.0), why=why)
    equal = replace(same, other="equal group weights")
    assert verdict(equal) == (
        f"{why}, and equal group weights would not serve the worst group (EV) better beyond chance."
    )
    noise = replace(equal, is_noise=True)
    assert verdict(noise).endswith("chance: the groups seem to differ in noise, not in what explains them.")
    better = replace(noise, groups=[group("EV", 29.1, 28.1)], whole=mean(24.3, 24.5))
    assert verdict(better) == (
        f"{why}; equal group weights would take the worst group (EV) from 29.1 to 28.1, and cost 0.2 on average."
    )
    small = replace(equal, groups=[group("EV", 29.1, 29.0, 0.01)])
    assert verdict(small).endswith("would change no error by more than 0.5 %.")


def test_classes_are_judged_by_log_loss_where_no_share_of_wrong_ones_changes():
    still = seen(mean(0.2, 0.2), group("EV", 0.3, 0.3), group("AA", 0.1, 0.1), constant=mean(0.4, 0.2))
    wrong = replace(still, amounts=Amounts(1, is_share=True), measure="share of wrong classes")
    surprise = replace(
        seen(mean(0.50, 0.51, 0.001), group("EV", 0.61, 0.59, 0.002), group("AA", 0.4, 0.4, 0.01)),
        amounts=Amounts(2),
        measure="log loss",
    )
    assert verdict(wrong, surprise) == (
        "No share of wrong classes changes beyond chance; by the log loss regret DRO takes the worst group "
        "(EV) from 0.61 "
        "to 0.59, and costs 0.01 on average."
    )
    nothing = replace(still, measure="log loss")
    assert verdict(wrong, nothing).startswith("The differences are within chance")
    shown = replace(wrong, groups=[group("EV", 0.30, 0.25, 0.01)], whole=mean(0.20, 0.21, 0.001))
    assert verdict(shown, surprise) == (
        "Regret DRO takes the worst group (EV) from 30.0 % to 25.0 %, and costs 1.0 points on average."
    )


def test_what_could_be_had_in_place_of_the_average_is_judged_by_log_loss_where_no_share_changes():
    why = "The fit is the average over rows, as asked"
    still = seen(mean(0.2, 0.2), group("EV", 0.3, 0.3), constant=mean(0.4, 0.2), why=why)
    wrong = replace(still, other="equal group weights", amounts=Amounts(1, is_share=True))
    surprise = seen(mean(0.50, 0.50, 0.01), group("EV", 0.61, 0.59, 0.002), why=why)
    surprise = replace(surprise, other="equal group weights", amounts=Amounts(2), measure="log loss")
    assert verdict(wrong, surprise) == (
        f"{why}; by the log loss equal group weights would take the worst group (EV) from 0.61 to 0.59, "
        "and on average change no more than chance."
    )
    worse = replace(surprise, groups=[group("EV", 0.61, 0.63, 0.002)])
    assert verdict(wrong, worse).endswith("would not serve the worst group (EV) better beyond chance.")


def test_classes_are_better_than_a_constant_if_their_probabilities_are():
    wrong = replace(seen(mean(0.2, 0.2), constant=mean(0.2, 0.2)), amounts=Amounts(1, is_share=True))
    better = replace(wrong, constant=mean(0.7, 0.4))
    assert verdict(wrong, better).startswith("The probabilities are better than those of a constant, but not")
    assert verdict(wrong, wrong).startswith("No better than a constant")


def test_the_worst_group_is_looked_at_by_itself_and_the_others_together():
    faint = group("EV", 29.1, 28.8, 0.14)  # 2.1 errors: beyond chance alone, not as one of twelve
    others = [group(str(i), 20.0, 20.0) for i in range(11)]
    assert "takes the worst group (EV)" in verdict(seen(mean(24.3, 24.3), faint, *others))
    hidden = faint._replace(before=19.0, after=18.7)
    assert "within chance" in verdict(seen(mean(24.3, 24.3), group("AA", 30.0, 30.0), hidden, *others))


def test_one_row_shows_nothing():
    one = Change("EV", 29.1, 1.0, 0.0, 1)
    assert not one.is_gain()
    assert not one._replace(after=99.0).is_loss()
