"""The terms of a regularizer, beside its own value."""

import numpy as np
import pytest

import stoic
from stoic.regularizers import Anchored, LeavingLast, terms_of

CENTER = np.array([1.0, -0.5, 2.0, 0.25])
WITH_TERMS = [
    stoic.Zero(),
    stoic.L1(0.7),
    stoic.L2(0.9),
    stoic.ElasticNet(2.0, 0.25),
    LeavingLast(stoic.ElasticNet(2.0, 0.25), 2),
    Anchored(stoic.ElasticNet(2.0, 0.25), CENTER, 0.8),
    Anchored(LeavingLast(stoic.L1(0.7), 1), CENTER, 0.8),
]


@pytest.mark.parametrize("regularizer", WITH_TERMS, ids=repr)
def test_the_terms_make_up_the_value_but_for_a_constant(regularizer):
    terms, points = terms_of(regularizer, 4), np.random.default_rng(0).standard_normal((20, 4))
    offsets = [
        regularizer.value(w) - terms.l1 @ np.abs(w) - terms.l2 @ (w * w) / 2 - terms.linear @ w for w in points
    ]
    np.testing.assert_allclose(offsets, offsets[0], atol=1e-12)


@pytest.mark.parametrize("bare", [stoic.Box(-1.0, 1.0), stoic.Simplex()])
def test_a_constraint_has_no_terms_whatever_is_around_it(bare):
    assert terms_of(bare, 4) is None
    assert terms_of(Anchored(bare, CENTER, 0.8), 4) is None
    assert terms_of(LeavingLast(bare, 1), 4) is None
