"""Put errors into copies of the sources one at a time, run the tests that should notice, and list what survives.

Run by `make mutants`. Exit code 1 where fewer than 95 % are killed, or a survivor has no reason in survivors.toml.
"""

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from mutants.listing import ROOT, Module, chosen, modules, reasons
from mutants.mutations import Mutant
from mutants.record import Record
from mutants.running import Copy, Verdict

ENOUGH = 0.95


class Case(NamedTuple):
    """A mutant and its module."""

    mutant: Mutant
    module: Module


def main() -> int:
    options = _options()
    os.nice(10)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    record = Record(Path(options.record), is_fresh=options.fresh)
    cases = [
        Case(mutant, module)
        for module in modules(tuple(options.module or ["*"]))
        for mutant in chosen(module, seed=options.seed, limit=options.limit, everything=options.all)
    ]
    print(f"{len(cases)} mutants of {len({case.module.name for case in cases})} modules", flush=True)
    if options.list:
        print("\n".join(_line(case.mutant) for case in cases))
        return 0
    verdicts = {case: record.verdict(*case) for case in cases}
    pending = [case for case, verdict in verdicts.items() if verdict is None]
    try:
        for k, (case, verdict) in enumerate(_judged(pending, record, options.jobs), start=1):
            verdicts[case] = verdict
            record.keep(*case, verdict)
            print(f"{k}/{len(pending)} {_said(case.mutant, verdict)}", flush=True)
    except KeyboardInterrupt:
        print("Stopped; the same command goes on from here.")
        return 130
    return _report(verdicts)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument(
        "--module", action="append", help="path below src/stoic without .py, may hold * (repeatable)"
    )
    parser.add_argument("--limit", type=int, help="at most so many of a module")
    parser.add_argument("--all", action="store_true", help="every mutant, not the root of their number")
    parser.add_argument("--seed", type=int, default=0, help="another seed chooses other mutants (default 0)")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time (default 1)")
    parser.add_argument("--fresh", action="store_true", help="forget what was found before")
    parser.add_argument("--record", default=ROOT / ".mutants.json", help="file of verdicts, .mutants.json")
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    return parser.parse_args()


def _judged(cases: list[Case], record: Record, n_jobs: int) -> Iterator[tuple[Case, Verdict]]:
    """Yield verdicts as they come; whatever ends the loop, no test is left running."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = [Copy(Path(folder) / str(k)) for k in range(n_jobs)] if cases else []
        free: SimpleQueue[Copy] = SimpleQueue()
        for copy in copies:
            free.put(copy)
        usual = {module: _usual(module, copies[0], record) for module in dict.fromkeys(c.module for c in cases)}

        def judge(case: Case) -> Verdict:
            copy = free.get()
            try:
                return copy.judge(case.mutant, case.module, usual[case.module])
            finally:
                free.put(copy)

        with ThreadPoolExecutor(n_jobs) as pool:
            futures = {pool.submit(judge, case): case for case in cases}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                for copy in copies:
                    copy.stop()


def _usual(module: Module, copy: Copy, record: Record) -> float:
    """Return how long the tests of a module take on the sources; they must pass."""
    if (known := record.usual(module)) is not None:
        return known
    verdict = copy.unchanged(module)
    if verdict.is_killed:
        sys.exit(f"The tests of {module.name} fail without any mutant: {verdict.by}")
    record.keep_usual(module, verdict)
    print(f"{module.name}: its tests take {verdict.seconds:.0f} s", flush=True)
    return verdict.seconds


def _line(mutant: Mutant) -> str:
    return f"{mutant.module} {mutant.function}\n    - {mutant.before}\n    + {mutant.after}"


def _said(mutant: Mutant, verdict: Verdict) -> str:
    if verdict.is_killed:
        return f"killed in {verdict.seconds:.0f} s by {verdict.by}: {mutant.module} {mutant.after}"
    return f"SURVIVED {_line(mutant)}"


def _report(verdicts: dict[Case, Verdict]) -> int:
    """Print a table and the survivors; return the exit code."""
    rows = {case.module.name: [0, 0] for case in verdicts}
    survivors = [case.mutant for case, verdict in verdicts.items() if not verdict.is_killed]
    for case, verdict in verdicts.items():
        rows[case.module.name][0] += 1
        rows[case.module.name][1] += verdict.is_killed
    print(f"\n{'module':28}{'mutants':>8}{'killed':>8}{'survivors':>11}")
    for name, (n, killed) in rows.items():
        print(f"{name:28}{n:8}{killed:8}{n - killed:11}")
    killed = len(verdicts) - len(survivors)
    print(f"{'all':28}{len(verdicts):8}{killed:8}{len(survivors):11}\n")
    for mutant in survivors:
        print(f"{_line(mutant)}\n    {reasons().get(mutant.place, 'NO REASON IS GIVEN')}")
    share = killed / max(1, len(verdicts))
    print(f"{killed} of {len(verdicts)} killed: {100 * share:.1f} %, at least {100 * ENOUGH:.0f} % are wanted")
    return 0 if share >= ENOUGH and all(mutant.place in reasons() for mutant in survivors) else 1


if __name__ == "__main__":
    sys.exit(main())
