"""The benchmark compares neighbors, says what it could not measure, and judges only at full size."""

import functools
import json
import math
import os
import sys
from types import SimpleNamespace

import pytest

import stoic
from stoic.engines.engine import Status
from stoic.studies.bench import measure as bench, workloads
from stoic.studies.bench.report import Measurement, MetricOutcome, Report
from stoic.studies.bench.targets import TARGETS
from stoic.studies.shared.timing import Range, exponent, machine, take_turns, versions


@pytest.fixture
def answers(monkeypatch):
    """Return a function that makes every solve end in a given way; without one they use the plain engine."""

    def answer(ending):
        def minimize(*args, engine, **options):
            if isinstance(ending, Exception):
                raise ending
            return ending

        monkeypatch.setattr(workloads, "minimize", minimize)

    plain = stoic.minimize
    monkeypatch.setattr(
        workloads, "minimize", lambda *args, engine, **options: plain(*args, engine="plain", **options)
    )
    return answer


def a_report(value, *, name="l2-m1", size="full"):
    return Report(size, 1, (MetricOutcome(TARGETS[name], Measurement([value], {})),), {}, {})


def test_competitors_take_turns_after_one_uncounted_round():
    calls, ticks = [], []
    competitors = {name: functools.partial(lambda name: calls.append(name) or len(calls), name) for name in "abc"}
    values = take_turns(competitors, 3, lambda: ticks.append(1))
    assert "".join(calls) == "abc" + "abc" + "bca" + "cab"
    assert values == {"a": [4, 9, 11], "b": [5, 7, 12], "c": [6, 8, 10]}
    assert len(ticks) == 3


def test_a_spread_is_a_median_with_its_extremes():
    assert Range.of([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0)


def test_the_exponent_of_a_power_is_its_power():
    x = [1.0, 10.0, 100.0]
    assert exponent(x, [5.0 * place**0.7 for place in x]) == pytest.approx(0.7)


def test_versions_and_machine_are_plain_data():
    assert json.loads(json.dumps([versions(), machine()]))[0]["numpy"]


def test_every_figure_has_a_target_and_every_target_a_figure():
    assert list(bench._METRICS) == list(TARGETS)


@pytest.mark.parametrize(
    ("name", "good", "bad", "must"),
    [
        ("l2-m1", 0.8, 0.81, "≤ 0.8"),
        ("dense-step", 150.0, 149.0, "≥ 150"),
        ("growth-nonzeros", 0.9, 1.2, "0.9 to 1.1"),
    ],
)
def test_a_target_says_what_must_be(name, good, bad, must):
    assert TARGETS[name].holds(good)
    assert not TARGETS[name].holds(bad)
    assert not TARGETS[name].holds(math.nan)
    assert TARGETS[name].must == must


def test_only_the_full_size_is_judged():
    full, small = a_report(0.9), a_report(0.9, size="small")
    assert full.holds(full.outcomes[0]) is False
    assert small.holds(small.outcomes[0]) is None


def test_a_timing_leaves_out_what_comes_before_the_first_record(answers):
    history = [
        {"samples": 100, "seconds": 50.0},
        {"samples": 200, "seconds": 51.0},
        {"samples": 300, "seconds": 52.0},
    ]
    answers(SimpleNamespace(status=Status.FINISHED, history=history))
    problem = workloads.problem_of(workloads.SMALL.text)
    assert workloads.seconds_per_row(problem, workloads.rosc(100, problem)) == pytest.approx(0.01)


@pytest.mark.parametrize("m", [1, 4])
def test_a_timing_of_few_rows_still_has_two_records(answers, m):
    problem = workloads.problem_of(workloads.SMALL.text)
    assert workloads.seconds_per_row(problem, workloads.rosc(1, problem, m=m)) > 0.0


@pytest.mark.slow
def test_about_the_wanted_share_of_steps_is_truncated(answers):
    problem = workloads.problem_of(workloads.SMALL.text)
    solver = workloads.truncating(problem, 1_200)
    assert workloads.share_truncated(problem, solver) == pytest.approx(workloads.TRUNCATED_SHARE, abs=0.05)


def test_a_figure_that_the_engine_cannot_do_is_not_available(answers):
    answers(stoic.IncompatibleParts("the compiled engine has no Simplex."))
    report = bench.run_bench("small", repetitions=1, only=["l1", "memory-rosc"])
    assert [outcome.reason for outcome in report.outcomes] == ["the compiled engine has no Simplex."] * 2
    assert report.as_dict()["figures"]["l1"]["not_available"] == "the compiled engine has no Simplex."
    assert not report.failed


def test_a_solve_that_goes_wrong_fails_its_figure(answers):
    answers(SimpleNamespace(status=Status.DIVERGED, message="The iterates became infinite."))
    report = bench.run_bench("small", repetitions=1, only=["nonzero"])
    assert report.failed
    assert report.as_dict()["figures"]["nonzero"]["failed"] == "The iterates became infinite."


def test_a_solve_that_does_not_fit_in_memory_fails_its_figure_only(answers):
    answers(MemoryError("Unable to allocate 37.3 GiB"))
    report = bench.run_bench("small", repetitions=1, only=["nonzero", "growth-p"])
    assert [outcome.failed for outcome in report.outcomes] == [True, True]
    assert report.outcomes[0].reason == "Unable to allocate 37.3 GiB"


def test_ctrl_c_ends_the_benchmark_though_a_solve_survives_it(answers):
    answers(SimpleNamespace(status=Status.INTERRUPTED))
    report = bench.run_bench("small", repetitions=1, only=["nonzero", "growth-p"])
    assert (report.outcomes, report.pending) == ((), ("nonzero", "growth-p"))


def test_ctrl_c_returns_the_figures_measured_so_far(answers):
    def progress(done, name):
        if name == "memory-rosc":
            raise KeyboardInterrupt

    report = bench.run_bench(
        "small", repetitions=1, only=["memory-rosc", "growth-p", "whole-call"], progress=progress
    )
    assert [outcome.target.name for outcome in report.outcomes] == ["growth-p"]
    assert report.pending == ("memory-rosc", "whole-call")
    assert not report.complete
    assert report.as_dict()["complete"] is False
    assert report.as_dict()["pending"] == ["memory-rosc", "whole-call"]


def test_ctrl_c_in_a_callback_keeps_the_figure_it_was_called_with(answers):
    def callback(report):
        raise KeyboardInterrupt

    report = bench.run_bench("small", repetitions=1, only=["memory-rosc", "growth-p"], callback=callback)
    assert [outcome.target.name for outcome in report.outcomes] == ["growth-p"]


@pytest.mark.slow
def test_a_callback_sees_the_report_grow_figure_by_figure(answers):
    seen = []
    only = ["memory-rosc", "growth-p"]
    report = bench.run_bench("small", repetitions=1, only=only, callback=seen.append)
    assert [[outcome.target.name for outcome in one.outcomes] for one in seen] == [
        ["growth-p"],
        ["growth-p", "memory-rosc"],
    ]
    assert [one.pending for one in seen] == [("memory-rosc",), ()]
    assert seen[-1] == report
    assert report.complete
    assert report.as_dict()["complete"] is True


def test_a_report_is_written_as_it_is(tmp_path):
    path = tmp_path / "bench.json"
    a_report(0.5).write(path)
    assert json.loads(path.read_text(encoding="utf-8")) == a_report(0.5).as_dict()


@pytest.mark.parametrize("moment", ["os.fsync", "os.replace"])
@pytest.mark.parametrize("what", [KeyboardInterrupt, OSError])
def test_a_report_that_is_half_written_leaves_the_old_one_and_nothing_else(moment, what, tmp_path, monkeypatch):
    def stop(*args):
        raise what

    path = tmp_path / "bench.json"
    a_report(0.5).write(path)
    monkeypatch.setattr(moment, stop)
    with pytest.raises(what):
        a_report(0.6).write(path)
    assert json.loads(path.read_text(encoding="utf-8")) == a_report(0.5).as_dict()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
def test_a_report_has_the_mode_of_the_file_it_replaces_or_that_of_any_new_file(tmp_path):
    path, other = tmp_path / "bench.json", tmp_path / "other"
    other.touch()
    a_report(0.5).write(path)
    assert path.stat().st_mode == other.stat().st_mode
    path.chmod(0o640)
    a_report(0.6).write(path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_without_scikit_learn_its_figures_are_not_available(answers, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    (outcome,) = bench.run_bench("small", repetitions=1, only=["dense-data"]).outcomes
    assert "scikit-learn is not installed" in outcome.reason


@pytest.mark.slow
def test_progress_counts_every_repetition(answers):
    seen = []
    only = ["memory-rosc", "growth-p"]
    bench.run_bench("small", repetitions=2, only=only, progress=lambda done, name: seen.append((done, name)))
    growth = [(done, "growth-p") for done in (0, 1, 2)]
    assert seen == [*growth, *((done, "memory-rosc") for done in (2, 3, 4))]


@pytest.mark.slow
def test_values_come_one_a_repetition(answers):
    (outcome,) = bench.run_bench("small", repetitions=3, only=["truncated"]).outcomes
    assert len(outcome.measured.values) == 3
    assert set(outcome.measured.detail) == {"seconds_ours", "seconds_theirs", "share_ours", "share_theirs"}
    assert outcome.measured.detail["share_theirs"] == 0.0


@pytest.mark.parametrize("settings", [{"size": "huge"}, {"only": ["l3"]}, {"repetitions": 0}])
def test_unknown_sizes_and_figures_are_refused(settings):
    with pytest.raises(stoic.InvalidParameter):
        bench.run_bench(**settings)
