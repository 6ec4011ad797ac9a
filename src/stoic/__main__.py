"""``python -m stoic`` is ``stoic``."""

from stoic.cli.main import main

if __name__ == "__main__":
    main(prog_name="stoic")
