"""Generated examples are the same in every run, on every machine; of large families of tests a sample is run."""

from zlib import crc32

import pytest
from hypothesis import settings

settings.register_profile("stoic", derandomize=True, deadline=None, database=None)
settings.register_profile("quick", settings.get_profile("stoic"), max_examples=10)
settings.load_profile("stoic")

TURNS = {"test_robust_means": -2, "engines": -1, "estimators": 1, "studies": 2, "integration": 3}


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="one case of each test but slow ones")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave all but one in k of the combinations marked `sampled(k)` to `make test-all`; names decide which.

    Tests of the engines come first, and last those that call for the same kernels: one worker compiles them.
    """
    items.sort(key=lambda item: TURNS.get(item.path.stem, TURNS.get(item.path.parent.name, 0)))
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker is not None and _number(item) % marker.args[0] != 0:
            item.add_marker("every")
    if config.getoption("--quick"):
        settings.load_profile("quick")
        kept = set(_quick(items))
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]


def _number(item):
    return crc32(item.nodeid.encode())


def _quick(items):
    """Return one case of each test, whatever its parameters, without the slow ones."""
    chosen = {}
    for item in sorted(items, key=_number):
        if item.get_closest_marker("slow") is None and item.get_closest_marker("every") is None:
            chosen.setdefault(item.nodeid.partition("[")[0], item)
    return chosen.values()


@pytest.fixture(autouse=True, scope="session")
def _no_kernel_is_compiled_in_a_quick_run(request):
    if not request.config.getoption("--quick"):
        yield
        return
    from stoic.engines.kernels import jit

    def skip(_folder):
        pytest.skip("it needs a kernel that no run has compiled yet: make test compiles all")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jit, "_prepare", skip)
        yield
