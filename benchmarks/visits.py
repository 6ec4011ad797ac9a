"""Files and functions of stoic that a solve and a fit of small data visit: how far a reader has to walk.

python benchmarks/visits.py            # counts
python benchmarks/visits.py --walk     # and the files, in the order of their first visit
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import stoic

SOURCES = Path(stoic.__file__).parent


def visits(action: Callable[[], Any]) -> dict[Path, set[str]]:
    """Return the functions that an action enters, by file, in the order of the first visit."""
    seen: dict[Path, set[str]] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        path, name = Path(frame.f_code.co_filename), frame.f_code.co_qualname
        if event == "call" and path.is_relative_to(SOURCES) and name != "<module>":
            seen.setdefault(path.relative_to(SOURCES), set()).add(name)

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--walk", action="store_true", help="list the files in the order of the first visit")
    walk = parser.parse_args().walk

    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((3000, 5)), np.arange(3000) % 3
    y = X @ np.ones(5) + rng.standard_t(2.5, 3000)
    problem = stoic.Problem(stoic.GroupLoss(X, y, groups), stoic.LogSumExp(10.0), stoic.L2(1e-3))
    actions = {
        "minimize(budget=200_000)": lambda: stoic.minimize(problem, budget=200_000, seed=0),
        "GroupDRORegressor().fit": lambda: stoic.GroupDRORegressor().fit(X, y, groups=groups),
    }
    for name, action in actions.items():
        action()  # imports and compiles
        seen = visits(action)
        print(f"{name}: {len(seen)} files, {sum(map(len, seen.values()))} functions")
        for path, functions in seen.items() if walk else ():
            print(f"  {path.as_posix():45s} {len(functions):3d}  {', '.join(sorted(functions)[:6])}")


if __name__ == "__main__":
    main()
