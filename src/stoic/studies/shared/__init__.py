"""What the studies share: settings, seeds, databases, processes, statistics."""
