"""``python -m stoic`` is ``stoic``: the command line, which Ctrl-C ends quietly from its first line on."""

import os
import signal

INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it


def run() -> None:
    """Import the command line, and run it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, say by nohup
        signal.signal(signal.SIGINT, _end_at_once)
    from stoic.cli.main import main  # noqa: PLC0415 - only now, as it takes a moment

    if signal.getsignal(signal.SIGINT) is _end_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    main(prog_name="stoic")


def _end_at_once(_signal: int, _frame: object) -> None:
    os._exit(INTERRUPTED)  # nothing has been begun


if __name__ == "__main__":
    run()
