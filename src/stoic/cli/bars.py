"""Progress of a study in a terminal, and in lines where there is none."""

import math
import sys
import time
from contextlib import ExitStack
from typing import Any

from stoic.cli.terminal import say


class Bars:
    """One progress bar after another; where there is no terminal, a line for every tenth."""

    def __init__(self) -> None:
        self._stack, self._what = ExitStack(), ""
        self._update: Any = None
        self._start, self._first, self._said = 0.0, 0, 0

    def __enter__(self) -> "Bars":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def show(self, done: int, total: int, what: str) -> None:
        """Show that some of the runs of one kind are done."""
        if what != self._what:
            from stoic.solve.progress import progress_bar  # noqa: PLC0415

            self._stack.close()
            self._update = self._stack.enter_context(progress_bar(max(1, total), visible=True))
            self._what, self._start, self._first, self._said = what, time.monotonic(), done, -1
        self._update(done, what)
        if not sys.stderr.isatty() and 10 * done // max(1, total) > self._said:
            self._said = 10 * done // max(1, total)
            say(self._line(done, total), err=True)

    def _line(self, done: int, total: int) -> str:
        if not total:
            return f"{self._what}: preparing"
        new = done - self._first
        minutes = (time.monotonic() - self._start) / new * (total - done) / 60.0 if new else 0.0
        more = f", about {math.ceil(minutes)} min left" if minutes > 1.0 else ""
        return f"{self._what}: {done} of {total} runs are done{more}"
