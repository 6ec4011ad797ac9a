"""Which mutants are tried, which tests should notice them, and which survivors are known."""

import hashlib
import math
import tomllib
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mutants.mutations import Mutant, mutant_by_hand, mutants_of

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SOURCES = ROOT / "src" / "stoic"


class Module(NamedTuple):
    """A module by its path below src/stoic, without .py, and the tests that should notice an error in it."""

    name: str
    tests: tuple[str, ...]

    @property
    def source(self) -> str:
        return (SOURCES / f"{self.name}.py").read_text(encoding="utf-8")

    @property
    def tests_digest(self) -> str:
        """A digest of the files that the tests stand in."""
        files = sorted({test.partition("::")[0] for test in self.tests})
        return digest(*self.tests, *((ROOT / file).read_text(encoding="utf-8") for file in files))


def digest(*texts: str) -> str:
    """Return a short name for some texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:20]


def sources_digest() -> str:
    """Return a digest of all sources."""
    return digest(*(path.read_text(encoding="utf-8") for path in sorted(SOURCES.rglob("*.py"))))


def modules(patterns: tuple[str, ...] = ("*",)) -> list[Module]:
    """Return the modules of modules.toml whose names match a pattern."""
    found = {}
    for row in _rows("modules.toml", "module"):
        for path in sorted(SOURCES.glob(f"{row['name']}.py")):
            name = path.relative_to(SOURCES).with_suffix("").as_posix()
            if path.stem != "__init__" and any(fnmatch(name, pattern) for pattern in patterns):
                found[name] = Module(name, tuple(row["tests"]))
    return list(found.values())


def chosen(module: Module, *, seed: int, limit: int | None, everything: bool) -> list[Mutant]:
    """Return the mutants by hand and, of n others, the ⌈√n⌉ whose digests with the seed are the smallest.

    So each of them is chosen for itself: an edit elsewhere in the module leaves most of the choice as it was.
    """
    by_hand = mutants_by_hand(module)
    taken = {mutant.place for mutant in by_hand}
    others = [mutant for mutant in mutants_of(module.name, module.source) if mutant.place not in taken]
    size = len(others) if everything else math.ceil(math.sqrt(len(others)))
    others.sort(key=lambda mutant: digest(str(seed), *mutant.place))
    return [*by_hand, *others[:size]][:limit]


def mutants_by_hand(module: Module) -> list[Mutant]:
    """Return the mutants of by_hand.toml that are of this module."""
    rows = [row for row in _rows("by_hand.toml", "mutant") if row["module"] == module.name]
    return [mutant_by_hand(module.name, module.source, row["before"], row["after"]) for row in rows]


@cache
def reasons() -> dict[tuple[str, str, str], str]:
    """Return why known survivors survive, by their places."""
    rows = _rows("survivors.toml", "survivor")
    return {(row["module"], row["function"], row["line"]): row["reason"] for row in rows}


def _rows(file: str, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads((HERE / file).read_text(encoding="utf-8")).get(table, [])
    return rows
