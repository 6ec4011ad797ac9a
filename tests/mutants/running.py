"""Tests on a copy of the sources with one error in it; the sources themselves are never edited."""

import contextlib
import multiprocessing
import os
import re
import shutil
import signal
import sys
import time
from compileall import compile_dir
from importlib.util import find_spec
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import NamedTuple

import pytest
from hypothesis import Phase, settings

from mutants.listing import ROOT, Module
from mutants.mutations import Mutant

PATIENCE = 4.0  # a mutant may take so many times as long as the sources,
GRACE = 60.0  # and so many seconds more
IN_COMMON = ("pytest", "hypothesis.extra.numpy", "numba", "cvxpy", "pandas", "scipy.optimize", "sklearn.base")
OPTIONS = ("-xq", "--tb=no", "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin")

_forks = multiprocessing.get_context("forkserver")


class Verdict(NamedTuple):
    """Whether tests noticed, the first that did (or "time limit"), and how long it took."""

    is_killed: bool
    by: str
    seconds: float


class Copy:
    """A copy of src and tests in a folder of its own, in which tests are run one after another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: ForkServerProcess | None = None
        for part in ("src", "tests"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        compile_dir(folder / "src", quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
        os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
        _forks.set_forkserver_preload(list(IN_COMMON))  # imported once, and not for every mutant

    def unchanged(self, module: Module) -> Verdict:
        """Run the tests of a module on the sources as they are."""
        return self._run(module.tests, limit=None)

    def judge(self, mutant: Mutant, module: Module, usual: float) -> Verdict:
        """Run the tests of a module on a mutant of it; `usual` is how long they take on the sources."""
        file = self.folder / "src" / "stoic" / f"{module.name}.py"
        try:
            file.write_text(mutant.source, encoding="utf-8")
            return self._run(module.tests, limit=PATIENCE * usual + GRACE)
        finally:
            file.write_text(module.source, encoding="utf-8")

    def stop(self) -> None:
        """End the tests that are running, and the processes that they have started."""
        if self.process is not None and self.process.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()

    def _run(self, tests: tuple[str, ...], limit: float | None) -> Verdict:
        start, output = time.perf_counter(), self.folder / "output"
        self.process = _forks.Process(target=_tested, args=(self.folder, tests, output))
        self.process.start()
        self.process.join(limit)
        if is_over := self.process.is_alive():
            self.stop()
            self.process.join()
        said = output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
        by = "time limit" if is_over else failed.group(1) if failed else said.strip()[-200:]
        return Verdict(self.process.exitcode != 0, by, time.perf_counter() - start)


def _tested(folder: Path, tests: tuple[str, ...], output: Path) -> None:
    """Run tests in this process, with the copy in front of all other packages, and exit with pytest's code."""
    os.setsid()  # Ctrl-C is for the one who waits
    with output.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(folder)
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(folder / "src"))
    os.environ["PYTHONPATH"] = str(folder / "src")
    phases = (Phase.explicit, Phase.generate)  # to fail is enough: no shrinking
    settings.register_profile("mutants", database=None, derandomize=True, deadline=None, phases=phases)
    settings.load_profile("mutants")
    found = find_spec("stoic").origin
    if not Path(found).is_relative_to(folder):
        raise RuntimeError(f"stoic comes from {found} and not from the copy in {folder}")
    sys.exit(pytest.main([*OPTIONS, *tests]))
