"""Models, predictions and pages from files of rows: the work of ``stoic fit``, ``predict`` and ``inspect``."""
