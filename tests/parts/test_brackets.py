"""Brackets: the root of an increasing function is found, in Python and in kernels alike."""

import math

import pytest
from hypothesis import given, strategies as st

from checks import generated
from stoic.brackets import TOLERANCE, Bracket, is_wide, narrowed, next_point
from stoic.engines.kernels import roots

FUNCTIONS = {
    "straight": lambda x: x - 0.3,
    "convex": lambda x: x**9 - 1e-5,
    "concave": lambda x: math.sqrt(x) - 0.1,
    "a step": lambda x: math.tanh(1e6 * (x - 0.7)),
    "near 0": lambda x: x - 1e-200,
    "flat, then steep": lambda x: max(x - 0.999, 1e-3 * (x - 0.999)),
    "huge": lambda x: 1e300 * (x - 0.2),
}


def root_of(function):
    """Return the bracket that is narrow enough, and the number of evaluations."""
    bracket, n = Bracket(0.0, 1.0, function(0.0), function(1.0), 0.0), 0
    while is_wide(bracket):
        point = next_point(bracket)
        assert bracket.low < point < bracket.high
        assert point == roots.next_point(bracket)
        after = narrowed(bracket, point, function(point))
        assert after == roots.narrowed(bracket, point, function(point))
        bracket, n = after, n + 1
    assert not roots.is_wide(bracket)
    return bracket, n


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_root_is_bracketed_and_narrowly(name):
    function = FUNCTIONS[name]
    bracket, n = root_of(function)
    assert function(bracket.low) <= 0.0 < function(bracket.high)
    assert bracket.high - bracket.low <= TOLERANCE * bracket.high
    assert n <= 80


@generated
@given(power=st.floats(0.5, 3.0), root=st.floats(1e-3, 0.999))
def test_powers_take_few_evaluations(power, root):
    bracket, n = root_of(lambda x: x**power - root**power)
    assert bracket.low == pytest.approx(root, rel=1e-9)
    assert n <= 25


def test_a_root_at_zero_ends_the_search():
    bracket, _ = root_of(lambda x: x)
    assert bracket.high < 1e-300 or bracket.low == 0.0


def test_an_infinite_value_at_the_end_does_no_harm():
    bracket, _ = root_of(lambda x: math.inf if x > 0.5 else x - 0.25)
    assert bracket.low == pytest.approx(0.25, rel=1e-9)
