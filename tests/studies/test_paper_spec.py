"""The settings of an experiment: the paper's by default, checked all at a time."""

import pytest

from stoic.errors import InvalidParameter
from stoic.studies.paper.runs import grid_of, settings_of
from stoic.studies.paper.spec import DECADES, Spec
from stoic.studies.shared.seeds import generator
from stoic.studies.shared.settings import checked


def test_the_defaults_are_what_the_paper_says():
    spec = Spec()
    assert spec.alphas == spec.steps == DECADES == tuple(10.0**k for k in range(-5, 6))
    assert (spec.radius, spec.trials, spec.validation_share) == (100.0, 5, 0.1)
    assert spec.methods == ("rrosc", "rmscg", "asc-pg", "rcivr", "rrosc-tracked", "auto")
    assert spec.regularizers == ("l1", "l2")
    assert len(spec.noise) == 6
    assert len(list(grid_of(spec))) == 2 * (5 * 121 + 11)  # "auto" has no step sizes


def test_settings_outrank_a_file(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text('trials = 3\nmethods = ["rrosc"]\nbudget = 1000\n', encoding="utf-8")
    spec = checked(Spec, {"budget": 2000}, path)
    assert (spec.trials, spec.methods, spec.budget) == (3, ("rrosc",), 2000)


WRONG = {
    "budget": [0, -1, 1.5, "many", None],
    "trials": [0, "x"],
    "size": [0.0, -1.0, float("inf"), float("nan")],
    "alphas": [(), (0.0,), (-1.0,), (1.0, 1.0), ("x",)],
    "steps": [(), (float("inf"),)],
    "methods": [(), ("nonsense",), ("rrosc", "rrosc")],
    "regularizers": [("l3",), ()],
    "losses": [("cubic",)],
    "noise": [("pareto",), ("cauchy-1",), ("pareto-x",)],
    "selection": ["best"],
    "test_labels": ["dirty"],
    "validation_share": [0.0, 1.0, 2.0],
    "seed": [-1, 0.5],
    "nonsense": [1],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in WRONG for value in WRONG[name]])
def test_a_wrong_setting_is_named_with_what_was_given(name, value):
    with pytest.raises(InvalidParameter) as refusal:
        checked(Spec, {name: value})
    message = str(refusal.value)
    assert "\n" not in message
    assert name in message or (name == "noise" and value[0] in message)


def test_all_that_is_wrong_is_said_at_a_time():
    with pytest.raises(InvalidParameter, match=r"size.*budget.*trials"):
        checked(Spec, {"size": -1.0, "budget": 0, "trials": 0})


@pytest.mark.parametrize("content", [b"budget = ", b"\xff\xfe", b"budget = 1\nbudget = 2"])
def test_a_file_that_is_not_toml_is_refused_by_name(tmp_path, content):
    path = tmp_path / "settings.toml"
    path.write_bytes(content)
    with pytest.raises(InvalidParameter, match=r"settings\.toml.*TOML"):
        checked(Spec, {}, path)


def test_a_file_that_is_missing_is_refused_by_name(tmp_path):
    with pytest.raises(InvalidParameter, match="nowhere"):
        checked(Spec, {}, tmp_path / "nowhere.toml")


def test_names_of_runs_are_all_different():
    spec = Spec(losses=("squared", "huber"), temperatures=(1.0, 10.0))
    keys = [run.key for run in grid_of(spec)]
    assert len(set(keys)) == len(keys) == 4 * 2 * (5 * 121 + 11)  # "auto" has no step sizes
    assert len(settings_of(spec)) == 48


def test_numbers_depend_on_the_names_only():
    assert generator("a", 1, 0.5).random() == generator("a", 1, 0.5).random()
    draws = {generator(*names).random() for names in [("a", 1), ("a", "1"), ("a", 1.5), ("a",), ("a1",)]}
    assert len(draws) == 5
