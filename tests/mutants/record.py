"""What has been found out, in one file, so that a run that was stopped goes on where it was."""

import json
from pathlib import Path

from mutants.listing import Module, digest, sources_digest
from mutants.mutations import Mutant
from mutants.running import Verdict


class Record:
    """Verdicts by mutant. One that was killed stays so until its module changes, a survivor until its tests do."""

    def __init__(self, path: Path, *, is_fresh: bool) -> None:
        self.path = path
        self.kept: dict[str, list] = {} if is_fresh or not path.exists() else json.loads(path.read_text("utf-8"))

    def usual(self, module: Module) -> float | None:
        """Return how long a module's tests take on the sources as they are, None where it is not known."""
        kept = self.kept.get(digest(sources_digest(), module.tests_digest))
        return kept[2] if kept else None

    def keep_usual(self, module: Module, verdict: Verdict) -> None:
        self._keep(digest(sources_digest(), module.tests_digest), verdict)

    def verdict(self, mutant: Mutant, module: Module) -> Verdict | None:
        kept = self.kept.get(digest(mutant.source)) or self.kept.get(digest(mutant.source, module.tests_digest))
        return Verdict(*kept) if kept else None

    def keep(self, mutant: Mutant, module: Module, verdict: Verdict) -> None:
        tests = () if verdict.is_killed else (module.tests_digest,)
        self._keep(digest(mutant.source, *tests), verdict)

    def _keep(self, key: str, verdict: Verdict) -> None:
        self.kept[key] = list(verdict)
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(self.kept), encoding="utf-8")
        partial.replace(self.path)
