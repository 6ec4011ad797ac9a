"""What `stoic reproduce` and `stoic tails` show while they run where there is no terminal."""

import itertools

from stoic.cli import bars as module


def test_there_is_a_line_for_every_tenth_with_the_time_left(capsys, monkeypatch):
    seconds = itertools.count(step=60.0)
    monkeypatch.setattr(module.time, "monotonic", lambda: next(seconds))
    with module.Bars() as bars:
        bars.show(0, 0, "data")
        for done in range(21):
            bars.show(done, 20, "grid")
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["data: preparing", "grid: 0 of 20 runs are done"]
    assert lines[2].startswith("grid: 2 of 20 runs are done, about ")
    assert lines[-1] == "grid: 20 of 20 runs are done"
    assert len(lines) == 12


def test_runs_that_were_done_before_do_not_count_for_the_time_left(capsys, monkeypatch):
    clock = iter([0.0, 120.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    with module.Bars() as bars:
        bars.show(50, 100, "grid")
        bars.show(60, 100, "grid")
    assert capsys.readouterr().err.splitlines() == [
        "grid: 50 of 100 runs are done",
        "grid: 60 of 100 runs are done, about 8 min left",
    ]
