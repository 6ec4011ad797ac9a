"""Generated examples are the same in every run and on every machine, and none is timed."""

from hypothesis import settings

settings.register_profile("stoic", derandomize=True, deadline=None, database=None)
settings.load_profile("stoic")
