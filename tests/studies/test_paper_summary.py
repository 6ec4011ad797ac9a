"""Averages take infinite trials as they are, and the sentences say what the numbers say."""

import math

import numpy as np
import pytest

from made_results import made_results
from stoic.reports.palette import looks_of
from stoic.reports.words import number, percent, plus_minus
from stoic.solvers import METHODS
from stoic.studies.paper.comparison import choices
from stoic.studies.paper.headline import against_the_paper, title, unfinished, what_came_out, what_was_run
from stoic.studies.paper.selection import Cell
from stoic.studies.paper.spec import DECADES, Spec
from stoic.studies.paper.summary import about_groups, lines_of, selections, verdicts
from stoic.studies.paper.words import power
from stoic.studies.shared.statistics import averages


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return made_results(tmp_path_factory.mktemp("made"))


def lines(results, regularizer, selection="plain"):
    """Return the lines of the main problem by method."""
    main = [line for line in lines_of(results, selection) if line.setting.temperature == 10.0]
    return {line.setting.method: line for line in main if line.setting.regularizer == regularizer}


def with_finals(results, finals):
    """Return the results with only the main curves of L1, whose trials end with the given errors."""
    kept = [
        curve for curve in results.main if curve.setting.regularizer == "l1" and curve.setting.method in finals
    ]
    curves = [
        curve._replace(scores={name: np.array(finals[curve.setting.method])[:, None] for name in curve.scores})
        for curve in kept
    ]
    one = {"regularizers": ("l1",), "temperatures": (10.0,), "trials": 1, "methods": tuple(finals) or ("rrosc",)}
    spec = results.spec.model_copy(update=one)
    return results._replace(spec=spec, curves={"plain": curves, "robust": []}, failed=[])


def words(results):
    return dict(what_came_out(results))["L1"]


def test_averages_are_those_of_numpy_where_all_is_finite():
    scores = np.random.default_rng(0).random((6, 3))
    found = averages(scores)
    np.testing.assert_allclose(found.mean, scores.mean(axis=0))
    np.testing.assert_allclose(found.deviation, scores.std(axis=0, ddof=1))
    np.testing.assert_allclose(
        [found.low, found.median, found.high], np.quantile(scores, [0.25, 0.5, 0.75], axis=0)
    )


@pytest.mark.parametrize(
    ("bad", "median", "high"), [(1, 2.5, math.inf), (2, math.inf, math.inf), (4, math.inf, math.inf)]
)
def test_infinite_trials_move_quantiles_as_large_ones_and_are_never_nan(bad, median, high):
    values = [1.0, 2.0, 3.0, 4.0]
    values[-bad:] = [math.inf] * bad
    found = averages(values)
    assert found.mean == math.inf
    assert (found.median, found.high) == (median, high)


def test_a_nan_counts_as_infinite():
    assert averages([1.0, math.nan, 2.0]).median == 2.0


def test_a_huge_error_overflows_without_a_warning():
    assert averages([1e200, 2e200, 1.7e308]).deviation == math.inf


def test_one_trial_has_no_deviation():
    assert math.isnan(averages([0.5]).deviation)


@pytest.mark.parametrize(
    ("mean", "deviation", "text"),
    [
        (0.31234, 0.0123, "0.312 ± 0.012"),
        (12.3, 4.56, "12.3 ± 4.6"),
        (1234.5, 987.6, "1234 ± 988"),
        (2e7, 3e6, "2e+07 ± 3e+06"),
        (0.5, 0.0, "0.5 ± 0"),
    ],
)
def test_a_mean_is_rounded_to_the_second_digit_of_its_deviation(mean, deviation, text):
    assert plus_minus(mean, deviation) == text


def test_numbers_that_are_not_there_are_dashes():
    assert [number(math.nan), percent(math.nan), number(math.inf)] == ["–", "–", "∞"]


def test_only_powers_of_ten_are_written_as_such():
    assert [power(value) for value in (1e-12, 1e5, 2e5, 0.3)] == ["10⁻¹²", "10⁵", "200000", "0.3"]


def test_methods_beyond_the_papers_do_not_look_like_them():
    looks = looks_of(METHODS)
    assert looks["rrosc"] == looks_of(("rrosc",))["rrosc"]
    assert len(set(looks.values())) == len(METHODS)


def test_a_line_counts_trials_that_diverged_failed_or_are_missing(results):
    assert lines(results, "l2")["asc-pg"].diverged == 1
    rcivr = lines(results, "l1")["rcivr"]
    assert (rcivr.ended, rcivr.failed, rcivr.missing) == (2, 1, 0)
    assert rcivr.remark == "1 of 3 failed"


def test_a_setting_without_a_finite_cell_says_so(results):
    cells = {name: {} for name in results.cells}
    bare = results._replace(cells=cells, curves={name: [] for name in cells})
    assert {line.remark for line in lines_of(bare, "plain")} == {"no cell of the grid has a finite error yet"}


def test_the_two_ways_of_selection_have_lines_of_their_own(results):
    assert lines(results, "l1")["rmscg"].cell.alpha == 0.1
    assert isinstance(lines(results, "l1", "robust")["rmscg"].cell, Cell)
    assert lines(results, "l1", "robust")["rmscg"].cell.alpha == 0.001


def test_a_single_group_of_test_rows_is_said_to_be_one(results):
    assert about_groups(results) == ""
    curves = [
        curve._replace(scores={**curve.scores, "worst_group": curve.scores["mse"]})
        for curve in results.curves["plain"]
    ]
    assert "in one group" in about_groups(results._replace(curves={"plain": curves, "robust": []}))
    assert about_groups(results._replace(curves={"plain": [], "robust": []})) == ""


def test_the_selection_of_the_spec_comes_first():
    assert selections(Spec(selection="robust")) == ("robust", "plain")


def test_a_verdict_names_the_lowest_and_the_steadiest(results):
    found = with_finals(results, {"rrosc": [1.0, 3.0], "rmscg": [4.0, 4.5], "rcivr": [9.0, 8.0]})
    (verdict,) = verdicts(found)
    assert verdict.lowest.setting.method == "rrosc"
    assert verdict.next.setting.method == "rmscg"
    assert verdict.steadiest.setting.method == "rmscg"
    assert "RROSC has the lowest mean test MSE, 2.0 ± 1.4; RMSCG follows with 4.25 ± 0.35." in words(found)
    assert "The smallest standard deviation is that of RMSCG, 4.25 ± 0.35." in words(found)
    assert against_the_paper(found).endswith("Here it is not both.")


def test_a_lead_within_the_spread_is_called_one(results):
    found = with_finals(results, {"rrosc": [1.0, 3.0], "rmscg": [2.0, 3.0]})
    assert "less than one standard deviation away" in words(found)


def test_a_method_that_diverged_is_not_ahead_however_low_the_rest(results):
    found = with_finals(results, {"rrosc": [5.0, 6.0], "rmscg": [0.1, math.inf]})
    (verdict,) = verdicts(found)
    assert verdict.lowest.setting.method == verdict.steadiest.setting.method == "rrosc"
    assert "RMSCG ended with an infinite error in some trial and has no finite mean." in words(found)


def test_one_trial_says_that_there_is_no_deviation(results):
    assert "With a single trial there is no standard deviation." in words(with_finals(results, {"rrosc": [1.0]}))


def test_nothing_finite_is_said_as_it_is(results):
    assert words(with_finals(results, {"rrosc": [math.inf]})).startswith("No method has a finite mean.")
    assert words(with_finals(results, {})) == "No trial has ended yet."


def test_what_diverged_is_said_with_how_often(results):
    assert "ASC-PG diverged in 1 of 3 trials and has no finite mean." in dict(what_came_out(results))["L2"]


def test_the_papers_finding_is_compared_only_where_it_can_be(results):
    found = with_finals(results, {"rrosc": [1.0, 1.1], "rmscg": [4.0, 4.5]})
    assert (
        against_the_paper(found)
        == "The paper finds RROSC both lowest in error and steadiest. Here that is so with L1."
    )
    assert against_the_paper(with_finals(results, {"rcivr": [1.0, 1.1], "rmscg": [4.0, 4.5]})) == ""
    assert against_the_paper(with_finals(results, {"rrosc": [1.0], "rmscg": [4.0]})) == ""


def test_what_is_missing_is_said(results, tmp_path):
    assert unfinished(results) == ""
    assert unfinished(results._replace(grid=results.grid[1:])).endswith("191 of 192 cells of the grid have ended.")
    bare = made_results(tmp_path, with_trials=False)
    assert unfinished(bare).endswith("0 of 48 trials have ended.")
    assert against_the_paper(bare) == ""


def test_what_was_run_is_one_sentence_with_its_numbers():
    text = what_was_run(Spec(trials=1, noise=(), losses=("huber",)))
    assert text.count(".") == 1
    for part in ("huber loss", "the labels as they are", "121 pairs", "1 trial with", "400,000 samples"):
        assert part in text


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "Test error under heavy-tailed noise: synthetic data in the shape of E2006"),
        ({"noise": ("gaussian-1",), "data": "e2006"}, "Test error under noise: the E2006 data"),
        ({"noise": (), "data": "some/where/claims.csv"}, "Test error of group DRO: claims.csv"),
    ],
)
def test_the_title_promises_no_more_than_was_run(settings, text):
    assert title(Spec(**settings)) == text


def test_the_papers_own_protocol_differs_in_nothing_but_what_is_open():
    found = {choice.what: choice.verdict for choice in choices(Spec(data="e2006"))}
    assert "differs" not in found.values()
    assert [what for what, verdict in found.items() if verdict == "chosen here"] == [
        "rows that sparse noise hits", "noise on the test labels", "temperature, λ in (7)", "batch size", "stages",
        "samples of a run", "validation errors are reduced to",
    ]  # fmt: skip


def test_a_protocol_of_its_own_says_where_it_differs():
    spec = Spec(trials=3, alphas=(0.1,), steps=DECADES[:7], methods=("rrosc", "scgd"), radius=5, size=0.5)
    found = {choice.what: choice for choice in choices(spec)}
    assert [found[name].verdict for name in ("data", "methods", "λ_reg", "radius D of RROSC")] == ["differs"] * 4
    assert found["step size"].here == "10⁻⁵, …, 10¹ (7 values)"
    assert found["data"].here.endswith("0.5 times its size")
