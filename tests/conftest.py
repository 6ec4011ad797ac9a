"""Generated examples are the same in every run, on every machine; of large families of tests a sample is run."""

from zlib import crc32

import pytest
from hypothesis import settings

settings.register_profile("stoic", derandomize=True, deadline=None, database=None)
settings.load_profile("stoic")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave all but one in k of the combinations marked `sampled(k)` to `make test-all`; names decide which."""
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker is not None and crc32(item.nodeid.encode()) % marker.args[0] != 0:
            item.add_marker("every")
