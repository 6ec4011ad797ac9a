"""Every method on every problem of the catalog, at default settings, against an independent solver."""

import numpy as np
import pytest

import stoic
import stoic.losses
import stoic.outers
import stoic.regularizers
from catalog import CASES, METHODS, is_within_assumptions

BUDGET = 200_000
PAIRS = [(method, name) for name in CASES for method in METHODS if method != "auto"]  # which is rrosc-tracked
FITTING = [pair for pair in PAIRS if is_within_assumptions(pair[0], CASES[pair[1]])]
CLASHING = [pair for pair in PAIRS if pair not in FITTING]


def sampled(pairs, k=5):
    """Leave all but one in k of the problems of a method to `make test-all`, not the same ones for each."""
    kept = set()
    for place, method in enumerate(METHODS, start=2):
        own = [pair for pair in pairs if pair[0] == method]
        kept |= set(own[place % k :: k] or own[:1])
    return [pytest.param(*pair, marks=[] if pair in kept else pytest.mark.every) for pair in pairs]


@pytest.mark.parametrize(("method", "name"), sampled(FITTING))
def test_a_method_comes_within_one_percent_of_the_optimum(method, name):
    case = CASES[name]
    budget = 3 * BUDGET // 10 if method == "rrosc-tracked" else BUDGET  # whose steps are many and short
    result = stoic.minimize(case.problem, method, budget=budget, seed=1)
    assert result.success, result.message
    assert result.samples <= budget
    assert case.relative_gap(result.w) <= (0.05 if method == "scgd" else 0.01)


@pytest.mark.parametrize(("method", "name"), CLASHING)
def test_a_problem_outside_the_assumptions_of_a_method_is_refused(method, name):
    with pytest.raises(
        stoic.IncompatibleParts, match=r"needs (a linear|a strongly convex|.* with hessian|a regularizer of)"
    ):
        stoic.minimize(CASES[name].problem, method, budget=BUDGET, seed=1)


@pytest.mark.parametrize("name", [name for name in CASES if is_within_assumptions("newton", CASES[name])])
def test_newton_reaches_the_optimum_of_a_finite_sum_to_twelve_digits(name):
    case = CASES[name]
    result = stoic.minimize(case.problem, "newton", budget=50_000)
    assert case.relative_gap(result.w) <= 1e-12
    assert result.n_steps <= 12  # rounding decides when a step changes nothing


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sampled(2)
def test_rcivr_reaches_the_optimum_of_a_finite_sum_to_ten_digits(name):
    case = CASES[name]
    solver = stoic.RCIVR(rule="finite-sum")
    w = stoic.minimize(case.problem, solver, budget=BUDGET, seed=2).w
    assert abs(case.relative_gap(w)) <= 1e-10


@pytest.mark.parametrize("name", CASES)
def test_the_oracle_satisfies_the_optimality_condition_that_stoic_computes(name):
    # w = prox(w − s∇) at an optimum: ties the oracle's program to the problem it stands for.
    case, step = CASES[name], 1e-2
    w = case.optimum
    moved = case.problem.regularizer.prox(w - step * case.problem.gradient(w), step)
    assert np.linalg.norm(moved - w) <= 1e-4 * step * max(1.0, np.linalg.norm(case.problem.gradient(case.w0)))


def test_the_catalog_holds_every_method_and_every_part():
    assert set(METHODS) == set(stoic.METHODS)
    problems = [case.problem for case in CASES.values()]
    regularizers = {type(getattr(p.regularizer, "regularizer", p.regularizer)) for p in problems}
    assert regularizers >= public_classes(stoic.regularizers)
    assert {type(p.outer) for p in problems} >= public_classes(stoic.outers)
    losses = {type(p.inner.loss) for p in problems if isinstance(p.inner, stoic.GroupLoss)}
    assert losses >= set(stoic.losses.LOSSES.values())


def public_classes(package):
    """Return the classes of a package that users make by their public names."""
    return {part for name in stoic.__all__ if isinstance(part := getattr(package, name, None), type)}
