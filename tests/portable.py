"""`make portable`: the tests that could depend on the processor, in environments that stand for other machines."""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from processors import ELSEWHERE, environments

ROOT = Path(__file__).parents[1]
SUITE = (
    "--doctest-modules",
    "src/stoic",
    "tests/integration/test_documents.py",
    "tests/integration/test_examples.py",
    "tests/integration/test_catalog.py::test_newton_reaches_the_optimum_of_a_finite_sum_to_twelve_digits",
    "tests/integration/test_catalog.py::test_rcivr_reaches_the_optimum_of_a_finite_sum_to_ten_digits",
    "tests/engines/test_agreement.py::test_both_engines_agree_when_the_scale_is_renewed_many_times",
    "tests/engines/test_agreement.py::test_both_engines_agree_on_a_generator_that_goes_on",
    "tests/estimators/test_regressor.py",
    "tests/estimators/test_classifier.py",
    "tests/solvers/test_newton.py",
    "tests/parts/test_regularizers.py",
    "tests/inners/test_sparse_blocks.py",
)


class Outcome(NamedTuple):
    """How the tests went in one environment."""

    environment: str
    passed: bool
    summary: str
    seconds: float


def run(name: str, variables: dict[str, str], options: list[str]) -> Outcome:
    """Run the tests in an environment; show what they said only where one failed."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", *options, *SUITE]
    environment, start = os.environ | variables, time.monotonic()
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    counted = re.findall(r"^=*\s*(\d+ \w+.*) in [\d.]+s", ended.stdout, re.MULTILINE)
    if ended.returncode != 0:
        print(name, ended.stdout, ended.stderr, sep="\n")
    summary = counted[-1] if counted else f"pytest ended with code {ended.returncode}"
    return Outcome(name, ended.returncode == 0, summary, time.monotonic() - start)


def main(options: list[str]) -> int:
    """Run all environments in turn, and return 1 if a test failed in any."""
    outcomes = []
    with tempfile.TemporaryDirectory() as empty:
        elsewhere = {"another place, an empty kernel cache": ELSEWHERE | {"STOIC_CACHE_DIR": empty}}
        for name, variables in (elsewhere | environments()).items():
            outcomes.append(run(name, variables, options))
            print(f"{name}: {outcomes[-1].summary}, {outcomes[-1].seconds:.0f} s", flush=True)
    width = max(len(outcome.environment) for outcome in outcomes)
    print(f"\n{'environment':{width}}  {'':6}  seconds  tests")
    for name, passed, summary, seconds in outcomes:
        print(f"{name:{width}}  {'passed' if passed else 'FAILED'}  {seconds:7.0f}  {summary}")
    return int(not all(outcome.passed for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
