"""Each kernel does what its plain twin does: rows, losses, outer functions; none is without a test.

The vectors and the parts of solvers are in tests/engines.
"""

import ast
import functools
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, strategies as st

import stoic
from checks import generated, vectors
from engines.vectors import STORAGE, as_csr, matrix_of, read_only
from stoic.engines.compiled.problem import translate
from stoic.engines.kernels import rows
from stoic.engines.kernels.jit import kernel
from stoic.engines.kernels.parts import blocks, losses, outers

ROOT = Path(__file__).parents[2]
HUGE = (0.0, -0.0, 1.0, -1.0, 1e-320, 1e-160, 1e8, -1e8, 1e160, -1e160, 1e308, -1e308, math.inf, -math.inf)

# --- rows: kernels, and the definition ---

any_storage = pytest.mark.parametrize("storage", STORAGE)
any_width = pytest.mark.parametrize("d", [*range(1, 18), 40])


@any_storage
@any_width
def test_dot_and_squared_norm(storage, d):
    X, u = matrix_of(d), np.random.default_rng(1).standard_normal(d)
    data, work = STORAGE[storage](X), np.zeros(d)
    for row in range(len(X)):
        scale = 1e-14 * (1.0 + np.abs(X[row]) @ np.abs(u))
        assert rows.dot(data, row, u) == pytest.approx(X[row] @ u, abs=scale)
        assert rows.squared_norm(data, row, work) == pytest.approx(X[row] @ X[row], rel=1e-14)
        assert not work.any()


@any_width
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_vector_dot_and_vector_push(d, kind):
    rng = np.random.default_rng(d)
    x, u = read_only(rng.standard_normal(d).astype(kind)), rng.standard_normal(d)
    precise, pushed = x.astype(float), u.copy()
    assert rows.vector_dot(x, u) == pytest.approx(precise @ u, abs=1e-14 * (1.0 + np.abs(precise) @ np.abs(u)))
    gain = rows.vector_push(x, 0.7, pushed)
    np.testing.assert_allclose(pushed, u + 0.7 * precise, rtol=1e-13, atol=1e-14)
    assert 0.7 * gain == pytest.approx(pushed @ pushed - u @ u, abs=1e-12)


@any_storage
@any_width
@pytest.mark.parametrize("wild", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_stays_so_in_whatever_order_it_is_summed(storage, d, wild):
    X = np.ones((2, d))
    data = STORAGE[storage](X)
    for place in range(d):
        u = np.arange(1.0, d + 1.0)
        u[place] = wild
        np.testing.assert_array_equal(rows.dot(data, 0, u), wild)
        gain = rows.push(data, 0, 2.0, u)
        np.testing.assert_array_equal(gain, wild)
        np.testing.assert_array_equal(u[place], wild)
        u[place - 1] = -wild  # of two infinities of either sign the sum is none
        assert d == 1 or math.isnan(rows.dot(data, 0, u))


@any_storage
@pytest.mark.parametrize("p", [1, 4])
def test_products_with_a_matrix(storage, p):
    X, Z = matrix_of(9), read_only(np.random.default_rng(3).standard_normal((9, p)))
    for row in range(len(X)):
        out = np.full(p, 77.0)
        rows.products(STORAGE[storage](X), row, Z, out)
        np.testing.assert_allclose(out, X[row] @ Z, rtol=1e-13, atol=1e-13)


@any_storage
@any_width
def test_push_and_clear(storage, d):
    X, rng = matrix_of(d), np.random.default_rng(2)
    data = STORAGE[storage](X)
    for row in range(len(X)):
        u = rng.standard_normal(d)
        pushed = u.copy()
        gain = rows.push(data, row, 0.7, pushed)
        np.testing.assert_allclose(pushed, u + 0.7 * X[row], rtol=1e-13, atol=1e-14)
        assert gain == pytest.approx(pushed @ pushed - u @ u, abs=1e-12)
        rows.clear(data, row, pushed)
        assert not pushed[X[row] != 0.0].any()
        kept = np.zeros(d, dtype=bool) if storage == "dense" else X[row] == 0.0
        np.testing.assert_array_equal(pushed[kept], u[kept])


@any_storage
def test_the_row_that_follows_is_fetched_and_nothing_else(storage):
    X, u = matrix_of(20), np.arange(20.0)
    data = STORAGE[storage](X)
    for row, following in itertools.product(range(len(X)), range(-1, len(X))):
        ours, theirs = u.copy(), u.copy()
        assert rows.push(data, row, 0.3, ours, following) == rows.push(data, row, 0.3, theirs)
        np.testing.assert_array_equal(ours, theirs)


@kernel
def fetched(array, place):
    rows.fetch(array, place)


def test_a_place_may_be_fetched_wherever_it_is():
    u = np.arange(5.0)
    for place in (0, 4, 5, 10**12):
        fetched(u, place)
        rows.fetch(u, place)
    np.testing.assert_array_equal(u, np.arange(5.0))


def test_the_squared_norm_of_a_row_with_a_column_twice_is_not_that_of_its_entries():
    data, work = as_csr(np.array([[2.0, 0.0, 1.0]]), doubled=True), np.zeros(3)
    assert (data.data**2).sum() == 3.125
    assert rows.squared_norm(data, 0, work) == 5.0


@pytest.mark.parametrize("size", [1e160, 1e300])
@any_storage
def test_huge_entries_add_up_as_in_numpy(storage, size):
    X, u, work = size * matrix_of(4), np.full(4, 1e-200), np.zeros(4)
    data = STORAGE[storage](X)
    with np.errstate(over="ignore"):
        assert rows.dot(data, 0, u) == pytest.approx(X[0] @ u)
        assert rows.squared_norm(data, 0, work) == math.inf
    assert not work.any()


def test_rows_in_single_precision_are_summed_in_double():
    X, u = matrix_of(9).astype(np.float32), np.full(9, 1.0 + 1e-12)
    x, work = X[0].astype(float), np.zeros(9)
    for data in (rows.Dense(read_only(X)), as_csr(X)):
        assert data[-1 if isinstance(data, rows.Dense) else 2].dtype == np.float32
        assert rows.dot(data, 0, u) == pytest.approx(x @ u, rel=1e-15)
        assert rows.squared_norm(data, 0, work) == pytest.approx(x @ x, rel=1e-15)
        assert rows.push(data, 0, 1.0 / 3.0, work) == pytest.approx(x @ x / 9.0, rel=1e-15)
        np.testing.assert_allclose(work, x / 3.0, rtol=1e-15)
        rows.clear(data, 0, work)


# --- losses ---

LOSSES = [
    stoic.Squared(),
    stoic.Huber(1.5),
    stoic.Huber(1e-3),
    stoic.Absolute(0.1),
    stoic.Absolute(1e3),
    stoic.Quantile(0.7, 0.1),
    stoic.Quantile(0.01, 2.0),
    stoic.Logistic(),
]
any_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)


def loss_code(loss):
    problem = stoic.Problem(stoic.GroupLoss(np.eye(2), [1.0, -1.0], loss=loss), stoic.Linear())
    return translate(problem, problem.inner).data.loss


def targets_of(loss):
    return (1.0, -1.0) if isinstance(loss, stoic.Logistic) else (0.0, 1.0, -2.5, 1e200, -1e308)


@np.errstate(all="ignore")
def check_loss(loss, prediction, target):
    code, t, y = loss_code(loss), np.array([prediction]), np.array([target])
    value, slope = losses.loss_value(code, prediction, target), losses.loss_slope(code, prediction, target)
    np.testing.assert_allclose(value, loss.value(t, y)[0], rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(slope, loss.derivative(t, y)[0], rtol=1e-13, atol=1e-300)


@any_loss
@generated
@given(prediction=st.floats(-1e3, 1e3), target=st.floats(-1e3, 1e3))
def test_loss_value_and_loss_slope(loss, prediction, target):
    check_loss(loss, prediction, math.copysign(1.0, target) if isinstance(loss, stoic.Logistic) else target)


@any_loss
@pytest.mark.parametrize("prediction", HUGE)
def test_losses_of_huge_and_infinite_predictions(loss, prediction):
    for target in targets_of(loss):
        check_loss(loss, prediction, target)


@any_loss
def test_the_loss_of_a_prediction_that_is_not_a_number_is_none(loss):
    check_loss(loss, math.nan, 1.0)


# --- outer functions ---

TEMPERATURES = (1e-8, 1e-3, 1.0, 50.0, 1e8)
U = {
    "ties": [1.0, 1.0, 1.0, 1.0],
    "two at the top": [3.0, 0.0, 3.0, 1.0],
    "zeros": [0.0, 0.0, 0.0, 0.0],
    "spread": [0.1, 5.0, 2.0, 30.0],
    "close": [1.0, 1.0 + 1e-9, 1.0 - 1e-9, 1.0],
    "huge": [1e300, 2.0, 1e308, 1e307],
    "opposite": [-1e308, 1e308, 0.0, 1.0],
    "one infinite": [1.0, math.inf, 2.0, 3.0],
    "two infinite": [math.inf, 1.0, math.inf, 3.0],
    "all infinite": [math.inf] * 4,
    "minus infinite": [-math.inf, 1.0, 2.0, 3.0],
    "not a number": [1.0, math.nan, 2.0, 3.0],
    "not a number where the prior is zero": [1.0, 3.0, math.nan, 2.0],
    "infinite where the prior is zero": [1.0, 3.0, math.inf, 2.0],
}
OUTERS = {
    "linear": lambda t: stoic.Linear(),
    "weighted": lambda t: stoic.Linear([0.5, -1.0, 0.0, 2.0]),
    "logsumexp": stoic.LogSumExp,
    "prior": lambda t: stoic.LogSumExp(t, prior=[1.0, 2.0, 0.0, 1e-3]),
    "cvar-0.1": lambda t: stoic.SmoothCVaR(0.1, t),
    "cvar-0.5": lambda t: stoic.SmoothCVaR(0.5, t),
    "cvar-0.6": lambda t: stoic.SmoothCVaR(0.6, t),
    "cvar-1": lambda t: stoic.SmoothCVaR(1.0, t),
    "baseline": lambda t: stoic.LogSumExp(t, prior=[1.0, 2.0, 0.0, 1e-3], baseline=[1.0, -3.0, 0.0, 1e3]),
    "cvar-baseline": lambda t: stoic.SmoothCVaR(0.5, t, baseline=[1.0, -3.0, 0.0, 1e3]),
    "scale": lambda t: stoic.LogSumExp(t, baseline=[1.0, -3.0, 0.0, 1e3], scale=[0.5, 2.0, 1.0, 3.0]),
}
any_outer = pytest.mark.parametrize("name", OUTERS)


def outer_code(outer, p):
    problem = stoic.Problem(stoic.GroupLoss(np.eye(p), np.ones(p), np.arange(p)), outer)
    return translate(problem, problem.inner).outer


@np.errstate(all="ignore")
def check_outer(outer, u):
    q = np.empty(len(u))
    outers.outer_gradient(outer_code(outer, len(u)), u, q)
    np.testing.assert_allclose(q, outer.gradient(u), rtol=1e-12, atol=1e-15)


@any_outer
@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("kind", U)
def test_outer_gradient_at_the_edges(name, temperature, kind):
    check_outer(OUTERS[name](temperature), np.array(U[kind]))


@any_outer
@generated
@given(u=vectors(4, 1e3), log_temperature=st.floats(-8.0, 8.0))
def test_outer_gradient(name, u, log_temperature):
    check_outer(OUTERS[name](10.0**log_temperature), u)


@pytest.mark.parametrize("p", [1, 2, 5, 40, 200])
@pytest.mark.parametrize("level", [0.01, 0.25, 0.5, 0.9, 1.0])
def test_threshold_and_tail_sum_give_capped_weights(p, level):
    u = np.random.default_rng(p).standard_normal(p) * 3.0
    check_outer(stoic.SmoothCVaR(level, 0.5), u)
    capacity = max(1.0, level * p)
    ordered = np.empty(p)
    top, factor = outers.threshold(u, ordered, capacity, 0.5)
    q = np.where(u > top, 1.0, factor * np.exp((np.minimum(u, top) - top) / 0.5))
    assert q.max() <= 1.0 + 1e-12
    assert q.sum() == pytest.approx(capacity)
    np.testing.assert_array_equal(ordered, np.sort(u)[::-1])
    for k in range(p):
        assert outers.tail_sum(ordered, k, 0.5) == pytest.approx(np.exp((ordered[k:] - ordered[k]) / 0.5).sum())


def test_scaled_below_is_zero_at_the_top_even_where_it_is_infinite():
    assert outers.scaled_below(math.inf, math.inf, 1e-8) == 0.0
    assert outers.scaled_below(1.0, 1.0, 1e-320) == 0.0
    assert outers.scaled_below(1.0, 3.0, 4.0) == -0.5
    assert outers.scaled_below(1.0, math.inf, 4.0) == -math.inf


@generated
@given(y=vectors(st.integers(1, 40)))
def test_sort_down(y):
    out = np.empty(y.size)
    outers.sort_down(read_only(y), out)
    np.testing.assert_array_equal(out, np.sort(y)[::-1])


@pytest.mark.parametrize(
    "y",
    [
        [3.0],
        [2.0, 1.0],
        [1.0, 2.0],
        [5.0, 4.0, 3.0, 2.0],
        [1.0, 2.0, 3.0, 4.0],
        [2.0, 1.0, 2.0, 1.0, 2.0],
        [0.0] * 9,
    ],
)
def test_sort_down_one_entry_ties_and_what_is_already_sorted(y):
    for values in (y, [*y, math.inf], [*y, -math.inf]):
        out = np.empty(len(values))
        outers.sort_down(read_only(values), out)
        assert out.tolist() == sorted(values, reverse=True)


def test_sift_makes_a_heap_of_two():
    heap = np.array([9.0, 1.0, 4.0, 2.0, 3.0])  # both halves below the root are heaps, the smallest on top
    outers.sift(heap, 0, 5)
    assert heap.tolist() == [1.0, 2.0, 4.0, 9.0, 3.0]
    outers.sift(heap, 4, 5)
    assert heap.tolist() == [1.0, 2.0, 4.0, 9.0, 3.0]


# --- block means of sparse rows; the whole is in test_sparse_blocks.py ---


def block_matrix(k, seed=0):
    """Return rows with full and empty columns, their weights, their blocks, and the block sums."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((4 * k, 30)) * (rng.random((4 * k, 30)) < np.linspace(0.0, 1.0, 30))
    weights, block = rng.standard_normal(4 * k), np.repeat(np.arange(k), 4)
    return X, weights, block, np.add.reduceat(weights[:, None] * X, 4 * np.arange(k), axis=0)


def empty_tile(n_columns, k):
    values, is_used = np.zeros((n_columns, k)), np.zeros(n_columns, dtype=bool)
    return blocks.Tile(values, is_used, np.zeros(k, dtype=np.uint64), np.zeros((4, k)))


@pytest.mark.parametrize("k", [1, 3, 24, 25, 60])
@pytest.mark.parametrize("width", [1, 7, 30])
def test_products_of_block_sums_come_from_tiles_that_are_left_empty(k, width):
    X, weights, block, sums = block_matrix(k)
    data, every = rows.csr_rows(scipy.sparse.csr_array(X)), np.arange(len(X))
    places, tile, gram = data.indptr[:-1].astype(np.int64), empty_tile(width, k), np.zeros((k, k))
    for first in range(0, 30, width):
        blocks.fill_tile(data, every, weights, block, places, first, True, tile)
        held = sums[:, first : first + width].T
        np.testing.assert_allclose(tile.values[: len(held)], held, rtol=1e-12, atol=1e-14)
        blocks.add_products(tile, gram)
        assert not any(part.any() for part in (tile.values, tile.is_used, tile.many))
    np.testing.assert_allclose(gram, np.tril(sums @ sums.T), rtol=1e-12, atol=1e-12)
    assert (places == data.indptr[1:]).all()


def test_pairs_and_four_columns_are_multiplied_into_the_lower_half():
    rng = np.random.default_rng(0)
    column, owners = rng.standard_normal(6), np.array([0, 2, 5], dtype=np.uint64)
    few, gram = np.zeros(6), np.zeros((6, 6))
    few[owners] = column[owners]
    blocks.multiply_pairs(column, owners, gram)
    np.testing.assert_allclose(gram, np.tril(np.outer(few, few)), rtol=1e-15)
    four = rng.standard_normal((4, 6))
    blocks.add_four(*four, gram)
    np.testing.assert_allclose(gram, np.tril(np.outer(few, few) + four.T @ four), rtol=1e-13, atol=1e-15)


def test_predictions_and_distances_of_blocks_of_rows():
    X, weights, _, sums = block_matrix(5)
    data, every, out = rows.csr_rows(scipy.sparse.csr_array(X)), np.arange(len(X)), np.empty(20)
    w = read_only(np.random.default_rng(1).standard_normal(30))
    blocks.predict_rows(data, every, w, out)
    np.testing.assert_allclose(out, X @ w, rtol=1e-12, atol=1e-13)
    squared = np.ones(5)
    blocks.add_squared_distances(data, every, weights, 4 * np.arange(6), w, np.empty(30), squared)
    np.testing.assert_allclose(squared, 1.0 + np.square(sums - w).sum(axis=1), rtol=1e-12)


# --- no kernel without a test ---

STEPS = {  # run by whole solves, in tests/engines
    "rosc_steps": "rosc",
    "mscg_steps": "mscg",
    "clipped_sgd_steps": "clipped-sgd",
    "scgd_steps": "scgd",
    "asc_pg_steps": "asc-pg",
    "scsc_steps": "scsc",
    "some_groups_steps": "alexr-some",
    "tracked_sox_steps": "sox-tracked",
    "civr_steps": "civr",
    "robust_mscg_steps": "mscg",  # in test_robust_means.py
}


def public_kernels():
    """Return the kernels and the functions that dispatch to them, but for the bodies that those choose from."""
    names, bodies = [], set()
    for path in sorted((ROOT / "src" / "stoic" / "engines" / "kernels").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.decorator_list and not node.name.startswith("_"):
                names.append(f"{path.stem}.{node.name}")
            elif isinstance(node, ast.Assign) and ast.unparse(node.value).startswith(("by_form(", "by_storage(")):
                names.append(f"{path.stem}.{ast.unparse(node.targets[0])}")
                bodies |= {ast.unparse(body).rpartition(".")[2] for body in node.value.args}
    return [name for name in names if name.partition(".")[2] not in bodies]


@functools.cache
def named_in_tests():
    """Return every name that the code of a test of kernels uses; text, comments and imports do not count."""
    names = set()
    for path in (Path(__file__), *(ROOT / "tests" / "engines").glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names |= {getattr(node, "attr", None), getattr(node, "id", None)}
    return names


@pytest.mark.parametrize("name", public_kernels())
def test_a_kernel_has_a_test(name):
    function = name.partition(".")[2]
    assert function in named_in_tests() or function in STEPS


def test_the_solvers_whose_kernels_are_tested_by_whole_solves_are_run():
    text = (ROOT / "tests" / "engines" / "runs.py").read_text(encoding="utf-8")
    assert all(f'"{solver}":' in text for solver in STEPS.values())
