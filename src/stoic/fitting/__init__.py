"""From files of rows to models, predictions and pages: what ``stoic fit``, ``predict`` and ``inspect`` do."""
