"""Tests on a copy of the sources with one error in it; the sources themselves are never edited."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from compileall import compile_dir
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import NamedTuple

from mutants.listing import ROOT, Module
from mutants.mutations import Mutant

PATIENCE = 4.0  # a mutant may take so many times as long as the sources,
GRACE = 60.0  # and so many seconds more


class Verdict(NamedTuple):
    """Whether tests noticed, the first that did (or "time limit"), and how long it took."""

    is_killed: bool
    by: str
    seconds: float


class Copy:
    """A copy of src/stoic in a folder of its own, on which tests are run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.process = folder, None
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        compile_dir(folder / "src", quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
        found = self._python("-c", "import stoic; print(stoic.__file__)").communicate()[0]
        if not Path(found.strip()).is_relative_to(folder):
            raise RuntimeError(f"stoic comes from {found.strip()} and not from the copy in {folder}")

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
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def _run(self, tests: tuple[str, ...], limit: float | None) -> Verdict:
        start = time.perf_counter()
        options = ("-x", "-q", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-seed=0")
        self.process = self._python("-m", "pytest", *options, *tests)
        try:
            said, is_over = self.process.communicate(timeout=limit)[0], False
        except subprocess.TimeoutExpired:
            self.stop()
            said, is_over = self.process.communicate()[0], True
        seconds = time.perf_counter() - start
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
        by = "time limit" if is_over else failed.group(1) if failed else said.strip()[-200:]
        return Verdict(self.process.returncode != 0, by, seconds)

    def _python(self, *arguments: str) -> subprocess.Popen[str]:
        """Start Python with the copy in front of all other packages."""
        alone = {"PYTHONPATH": str(self.folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        quiet = {"HYPOTHESIS_STORAGE_DIRECTORY": str(self.folder / "hypothesis"), "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(  # noqa: S603 - our own Python
            [sys.executable, *arguments],
            cwd=ROOT,
            env=os.environ | alone | quiet | {"OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
