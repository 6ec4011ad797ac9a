"""Which engine "auto" takes."""

import numpy as np
import pytest

import stoic
from stoic.engines.choice import choose_engine
from stoic.engines.compiled import CompiledEngine
from stoic.engines.plain import PlainEngine
from stoic.inners.metered import Metered


@pytest.mark.parametrize(
    ("budget", "columns", "kind"),
    [
        (49_999, 3, PlainEngine),
        (50_000, 3, CompiledEngine),
        (9_999, 10_000, PlainEngine),
        (10_000, 10_000, CompiledEngine),
    ],
)
def test_kernels_are_loaded_where_there_is_enough_to_do(budget, columns, kind):
    problem = stoic.Problem(stoic.GroupLoss(np.ones((4, columns)), np.ones(4)), stoic.Linear())
    solver = stoic.MSCG(step_size=0.1, batch_size=1, n_steps=10)
    assert type(choose_engine("auto", solver, problem, Metered(problem.inner, budget))) is kind
