"""What tests of the engines share."""

import pytest

from stoic.engines.compiled import engine as compiled


@pytest.fixture
def only_kernels(monkeypatch):
    """Fail where the compiled engine hands more than the first step of a CIVR to the plain one."""
    plain = compiled.run_chunk

    def guarded(solver, problem, meter, chunk, rng, limits):
        after = plain(solver, problem, meter, chunk, rng, limits)
        if after.n_steps > chunk.n_steps:
            assert compiled.innermost(solver, problem, chunk.state).state.y is None
        return after

    monkeypatch.setattr(compiled, "run_chunk", guarded)
