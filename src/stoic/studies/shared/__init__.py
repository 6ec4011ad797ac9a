"""Parts that the studies share: settings, seeds, stores, resumed runs, statistics."""
