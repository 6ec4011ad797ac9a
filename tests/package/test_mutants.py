"""The mutants: what an error looks like, which are chosen, and that the lists beside them are not out of date."""

import ast

import pytest

from mutants.listing import ROOT, Module, chosen, modules, mutants_by_hand, reasons
from mutants.mutations import mutant_by_hand, mutants_of
from mutants.record import Record
from mutants.running import Verdict

SOURCE = '''"""A module."""

import math

TOLERANCE = 1e-9


class Steps:
    """Steps with 3 of a kind."""

    def at(self, k: int = 0, *, power: float = 2.0) -> float:
        """Return 1 / k."""
        if k < 1:
            raise ValueError(f"{k} is below {1}")
        k = max(k, 2) if power else -k
        return math.sqrt(self.sigma0 * k**power), k
'''


def after(source=SOURCE):
    return {(mutant.function, mutant.after) for mutant in mutants_of("steps", source)}


@pytest.mark.parametrize(
    ("function", "line"),
    [
        ("", "TOLERANCE = 1e-06"),
        ("Steps.at", "def at(self, k: int = 1, *, power: float = 2.0) -> float:"),
        ("Steps.at", "def at(self, k: int = 0, *, power: float = 4.0) -> float:"),
        ("Steps.at", "if k <= 1:"),
        ("Steps.at", "if k > 1:"),
        ("Steps.at", "if not (k < 1):"),
        ("Steps.at", "if k < 2:"),
        ("Steps.at", "pass  # if k < 1:"),
        ("Steps.at", "k = min(k, 2) if power else -k"),
        ("Steps.at", "k = max(k, 3) if power else -k"),
        ("Steps.at", "k = max(k, 2) if not (power) else -k"),
        ("Steps.at", "k = max(k, 2) if power else k"),
        ("Steps.at", "pass  # k = max(k, 2) if power else -k"),
        ("Steps.at", "return (self.sigma0 * k**power), k"),
        ("Steps.at", "return math.sqrt(self.sigma0 / k**power), k"),
        ("Steps.at", "return math.sqrt(self.sigma0 * k*power), k"),
        ("Steps.at", "return math.sqrt(self.sigma1 * k**power), k"),
        ("Steps.at", "return k, math.sqrt(self.sigma0 * k**power)"),
    ],
)
def test_an_operator_a_number_a_name_or_a_statement_changes(function, line):
    assert (function, line) in after()


def test_docstrings_annotations_and_messages_stay():
    assert len(after()) == 18


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_a_mutant_is_another_module_that_can_be_parsed_and_has_a_place_of_its_own(module):
    found = chosen(module, seed=0, limit=None, everything=False)
    assert len({mutant.place for mutant in found}) == len(found)
    for mutant in found:
        assert ast.dump(ast.parse(mutant.source)) != ast.dump(ast.parse(module.source))


def test_a_passage_by_hand_must_stand_once():
    mutant = mutant_by_hand("steps", SOURCE, "-k", "0")
    assert (mutant.function, mutant.after) == ("Steps.at", "k = max(k, 2) if power else 0")
    for missing in ("k, 9", "k"):
        with pytest.raises(ValueError, match="not once"):
            mutant_by_hand("steps", SOURCE, missing, "0")


def test_every_mutant_by_hand_fits_its_module():
    listed = (ROOT / "tests/mutants/by_hand.toml").read_text(encoding="utf-8").count("[[mutant]]")
    assert sum(len(mutants_by_hand(module)) for module in modules()) == listed


def test_every_survivor_that_has_a_reason_is_a_mutant_of_its_module():
    places = {mutant.place for module in modules() for mutant in mutants_of(module.name, module.source)}
    places |= {mutant.place for module in modules() for mutant in mutants_by_hand(module)}
    assert set(reasons()) <= places
    assert all(len(reason) > 20 for reason in reasons().values())


def test_the_same_seed_chooses_the_same_mutants_and_an_edit_elsewhere_leaves_most_of_them():
    (module,) = modules(("means",))
    options = {"limit": None, "everything": False}
    first = [mutant.place for mutant in chosen(module, seed=0, **options)]
    assert first == [mutant.place for mutant in chosen(module, seed=0, **options)]
    assert set(first) != {mutant.place for mutant in chosen(module, seed=1, **options)}

    class Longer(Module):
        source = module.source + "\n\ndef double(x: float) -> float:\n    return 2.0 * x\n"

    longer = {mutant.place for mutant in chosen(Longer(*module), seed=0, **options)}
    assert len(longer & set(first)) >= len(first) - 2


def test_there_are_enough_mutants_and_every_test_file_is_there():
    options = {"seed": 0, "limit": None, "everything": False}
    assert sum(len(chosen(module, **options)) for module in modules()) >= 150
    for module in modules():
        assert all((ROOT / test.partition("::")[0]).exists() for test in module.tests)


def test_a_record_goes_on_where_it_was(tmp_path):
    (module,) = modules(("truncation",))
    first, second, third = list(mutants_of("truncation", module.source))[:3]
    record = Record(tmp_path / "record.json", is_fresh=False)
    record.keep(first, module, Verdict(True, "a test", 1.0))
    record.keep(second, module, Verdict(False, "", 1.0))
    again = Record(tmp_path / "record.json", is_fresh=False)
    assert again.verdict(first, module).by == "a test"
    assert not again.verdict(second, module).is_killed
    assert again.verdict(third, module) is None
    other_tests = module._replace(tests=module.tests[:1])
    assert again.verdict(first, other_tests).is_killed
    assert again.verdict(second, other_tests) is None
    assert Record(tmp_path / "record.json", is_fresh=True).verdict(first, module) is None
