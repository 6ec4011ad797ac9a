"""The thresholded form, part by part, against vectors that take every prox themselves."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from checks import generated, vectors
from engines.vectors import STORAGE, copied, explicit, make_thresholded, matrix_of, regularizer_of, summed
from stoic.engines.kernels.jit import kernel
from stoic.engines.kernels.vectors import ball as in_ball, thresholded as th
from stoic.engines.kernels.vectors.thresholded import N_BUCKETS, N_LINES
from stoic.regularizers import prox_in_ball

any_storage = pytest.mark.parametrize("storage", STORAGE)
both_tails = pytest.mark.parametrize("has_tail", [False, True])
PENALTIES = {"l1": (0.3, 0.0), "elastic net": (0.05, 0.5), "ridge": (0.0, 2.0), "strong": (3.0, 0.1)}
any_penalty = pytest.mark.parametrize(("l1", "l2"), PENALTIES.values(), ids=PENALTIES)


def lines_of(form):
    """Return the lines of the table up to now."""
    return form.table[: int(form.scalars[th.NOW]) + 1]


def grown(n_steps, l1, l2, *, v=(1.0,), step=0.1):
    form = make_thresholded(np.array(v))
    for _ in range(n_steps):
        th.pass_time(form, step, l1, l2)
    return form


# --- one coordinate ---


def test_a_value_is_its_potential_less_the_threshold():
    for v, value in [(3.0, 2.0), (-3.0, -2.0), (0.5, 0.0), (1.0, 0.0), (0.0, 0.0), (-1.0, 0.0)]:
        assert th.shrunk(v, 1.0) == value
        assert th.shrunk(v, 0.0) == v


def test_line_now_is_the_last_of_the_table():
    form = grown(7, 1.0, 0.5)
    line = th.line_now(form)
    assert line[:5] == (7, *lines_of(form)[-1])
    assert line.p == pytest.approx(1.05**-7)
    assert line.pace == form.scalars[th.PACE] == 4.0 / 0.1


@any_penalty
def test_pass_time_adds_a_line_and_its_sums(l1, l2):
    form, values = grown(30, l1, l2, v=(1.0, -0.2, 0.0, 5.0)), np.array([1.0, -0.2, 0.0, 5.0])
    for _ in range(30):
        values = regularizer_of(l1, l2).prox(values, 0.1)
    np.testing.assert_allclose(explicit(form), values, rtol=1e-12, atol=1e-13)
    table = lines_of(form)
    np.testing.assert_allclose(table[1:, th.SUM_P], table[1:, th.P].cumsum(), rtol=1e-13)
    np.testing.assert_allclose(table[1:, th.SUM_PQ], (table[1:, th.P] * table[1:, th.Q]).cumsum(), rtol=1e-13)


@pytest.mark.parametrize("v", [20.0, -20.0, 4.2, -0.7, 0.05, 0.0])
@any_penalty
def test_what_a_coordinate_has_gathered_is_the_sum_of_its_values(v, l1, l2):
    form = grown(100, l1, l2)
    values = [line[th.P] * th.shrunk(v, line[th.Q]) for line in lines_of(form)[1:]]
    assert th.gathered(form, v, th.line_now(form)) == pytest.approx(sum(values), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("v", [5.0, -5.0, 0.5, 0.0])
@pytest.mark.parametrize("step", [0.3, -0.3, 50.0, -50.0, 0.0, 1e130])
def test_a_touch_moves_the_value_and_leaves_the_past(v, step):
    form, X = grown(20, 1.0, 0.3, v=(v, 1.0)), STORAGE["dense"](np.eye(6, 2))
    before, total = explicit(form), summed(X, form)
    th.touch(form, 0, step, 0.0, th.line_now(form))
    np.testing.assert_allclose(explicit(form), before + np.array([step, 0.0]), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(summed(X, form), total, rtol=1e-9, atol=1e-12 + 1e-14 * abs(step))
    th.touch(form, 1, step, 17.0, th.line_now(form))  # the share of a row has 17 for it
    np.testing.assert_allclose(summed(X, form) - [0.0, 17.0], total, rtol=1e-9, atol=1e-12 + 1e-13 * abs(step))


# --- rows ---


@any_storage
@any_penalty
def test_thresholded_product_and_add_thresholded_are_those_of_the_values(storage, l1, l2):
    X, rng = matrix_of(9), np.random.default_rng(0)
    data, form = STORAGE[storage](X), grown(25, l1, l2, v=rng.standard_normal(9))
    for row, factor in itertools.product(range(len(X)), (0.4, -3.0, 1e-6, 1e20, 0.0)):
        moved, w, sums = copied(form), explicit(form), summed(data, form)
        product = pytest.approx(X[row] @ w, rel=1e-12, abs=1e-13)
        assert th.thresholded_product(data, form, row) == product
        th.add_thresholded(data, moved, row, factor)
        np.testing.assert_allclose(explicit(moved), w + factor * X[row], rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(summed(data, moved), sums, rtol=1e-9, atol=1e-12 * (1.0 + factor**2))


def test_a_row_keeps_its_share_and_gives_back_what_a_change_of_sign_takes():
    X, form = STORAGE["csr"](np.array([[1.0, 1.0, 1.0]])), grown(10, 1.0, 0.0, v=(3.0, -3.0, 0.5))
    th.add_thresholded(X, form, 0, 0.25)
    assert form.shares[0] == 2.5  # ΣP = 10, times the factor
    assert form.past[:2].tolist() == [0.0, 0.0]
    assert form.past[2] != 0.0  # was dead
    assert form.later[0] == 2


@any_storage
@any_penalty
def test_the_form_follows_a_vector_that_takes_every_prox_itself(storage, l1, l2):
    rng, X = np.random.default_rng(0), matrix_of(12, n=40)
    data, w = STORAGE[storage](X), rng.standard_normal(12)
    regularizer, form, total = regularizer_of(l1, l2), make_thresholded(w, n_rows=40), np.zeros(12)
    for t in range(N_LINES + 300):  # more steps than the table has lines
        step = 0.01 * (1.0 + t % 3)
        if th.needs_rebase(form, step, l1):
            th.rebase(form)
        for row in rng.integers(0, 40, 2):
            product = th.thresholded_product(data, form, row)
            assert product == pytest.approx(X[row] @ w, rel=1e-9, abs=1e-11)
            factor = 0.05 * rng.standard_normal()
            th.add_thresholded(data, form, row, factor)
            w = w + factor * X[row]
        th.pass_time(form, step, l1, l2)
        w = regularizer.prox(w, step)
        total += w
    np.testing.assert_allclose(explicit(form), w, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(summed(data, form), total, rtol=0.0, atol=1e-9 * np.abs(total).max())
    assert th.measure(form) == pytest.approx(np.linalg.norm(w), rel=1e-9)
    assert form.scalars[th.LOW] == form.scalars[th.HIGH] == th.measure(form)


def test_add_thresholded_columns_moves_the_coordinates_it_is_given():
    form, columns = grown(20, 1.0, 0.2, v=(3.0, -1.0, 0.1, 2.5)), np.array([0, 2, 3], dtype=np.uint32)
    packed, q, X = (
        np.array([[1.0, 2.0], [0.5, -4.0], [0.0, 0.0]]),
        np.array([0.25, 0.75]),
        STORAGE["dense"](np.eye(6, 4)),
    )
    before, total = explicit(form), summed(X, form)
    th.add_thresholded_columns(form, columns, packed, q, -0.3)
    before[columns] -= 0.3 * packed @ q
    np.testing.assert_allclose(explicit(form), before, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(summed(X, form), total, rtol=1e-10, atol=1e-14)


# --- the table and its buckets ---

LAWS = {  # the steps, the weights, and how often the table may be made anew in 6000 of them
    "constant": (lambda t: 0.05, 1.0, 0.0, 1),
    "tiny": (lambda t: 1e-305, 1.0, 0.0, 6000),
    "huge": (lambda t: 0.1, 1e290, 0.0, 1),
    "elastic net": (lambda t: 0.05, 0.4, 0.02, 10),
    "strong elastic net": (lambda t: 0.5, 0.4, 3.0, 700),  # P below 1e-6 every 16 steps
    "power law 0.6": (lambda t: 0.5 * (1.0 + t / 20.0) ** -0.6, 1.0, 0.0, 10),
    "power law 1.0": (lambda t: 0.5 * (1.0 + t / 20.0) ** -1.0, 1.0, 0.1, 10),
    "up and down": (lambda t: 10.0 ** (3.0 * math.sin(t)), 1.0, 0.0, 6000),
    "ridge": (lambda t: 0.3, 0.0, 0.1, 20),
}


@kernel
def lines_below(form, sizes, out):
    line = th.line_now(form)
    for k in range(sizes.size):
        out[k] = th.last_below(form, sizes[k], line)


def check_buckets(form):
    """Compare the line found for many sizes with the last one whose Q is smaller."""
    line, Q = th.line_now(form), lines_of(form)[:, th.Q]
    edges = np.arange(0, form.scalars[th.N_USED], 97) / line.pace if line.pace > 0.0 else np.zeros(0)
    near = np.concatenate([Q[-50:], Q[:50], edges])
    near = np.concatenate([near, near * (1.0 - 3e-16), near * (1.0 + 3e-16)])
    sizes = np.concatenate([near, Q[-1] * np.linspace(0.0, 1.3, 500), [1e200]])
    sizes = sizes[sizes > 0.0]
    found = np.empty(sizes.size)
    lines_below(form, sizes, found)
    expected = np.searchsorted(Q, sizes) - 1
    is_close = np.abs(Q[[expected, np.minimum(expected + 1, Q.size - 1)]] - sizes) <= 1e-15 * sizes
    np.testing.assert_array_equal(found[~is_close.any(axis=0)], expected[~is_close.any(axis=0)])
    assert (np.abs(found - expected) <= 1.0).all()  # a value is 0 where it equals Q: either line will do
    assert th.last_below(form, 2.0 * Q[-1] + 1.0, line) == form.scalars[th.NOW]
    assert th.gathered(form, 0.0, line) == 0.0


@pytest.mark.parametrize("law", LAWS)
def test_the_last_line_below_a_size_is_found_and_needs_rebase_keeps_its_promises(law):
    steps, l1, l2, most = LAWS[law]
    form, n_rebased = make_thresholded(np.array([1.0, -2.0])), 0
    for t in range(6000):
        if th.needs_rebase(form, steps(t), l1):
            check_buckets(form)
            th.rebase(form)
            n_rebased += 1
            assert (form.lines == N_LINES).all()
        th.pass_time(form, steps(t), l1, l2)
        assert form.scalars[th.NOW] < N_LINES
        assert form.scalars[th.N_USED] < N_BUCKETS
        if t % 997 == 0:
            check_buckets(form)
    buckets = np.floor(lines_of(form)[:, th.Q] * form.scalars[th.PACE] * (1.0 + 1e-12))
    assert l1 == 0.0 or (np.diff(buckets[1:]) >= 1.0).all()  # never two lines in one bucket
    assert 1 <= n_rebased <= most


def test_the_table_is_made_anew_where_it_is_full_fine_or_short_of_digits():
    form = make_thresholded(np.ones(2))
    assert not th.needs_rebase(form, 0.1, 1.0)  # a new one takes any step
    th.pass_time(form, 0.1, 1.0, 0.0)
    assert not th.needs_rebase(form, 0.1, 1.0)
    assert not th.needs_rebase(form, 0.026, 1.0)
    assert th.needs_rebase(form, 0.024, 1.0)  # a quarter of the first step is a bucket
    assert th.needs_rebase(form, 0.1 * N_LINES, 1.0)
    assert not th.needs_rebase(form, 1e-9, 0.0)  # without L1 there are no buckets
    th.pass_time(form, 1.0, 0.0, 2e6)
    assert th.needs_rebase(form, 0.1, 0.0)
    full = grown(N_LINES - 1, 1.0, 0.0)
    assert th.needs_rebase(full, 0.1, 1.0)
    assert not th.needs_rebase(grown(N_LINES - 2, 1.0, 0.0), 0.1, 1.0)


@any_penalty
def test_rebase_leaves_the_values_and_their_sum(l1, l2):
    form, X = grown(50, l1, l2, v=(4.0, -1.0, 0.3, 0.0)), STORAGE["dense"](np.eye(6, 4))
    form.scalars[th.SIZE] = 1e100
    w, total = explicit(form), summed(X, form)
    th.rebase(form)
    np.testing.assert_array_equal(explicit(form), w)
    np.testing.assert_allclose(summed(X, form), total, rtol=1e-12)
    np.testing.assert_array_equal(form.v, w)
    assert form.scalars[th.SIZE] == np.abs(w).max()
    assert th.line_now(form)[:5] == (0, 1.0, 0.0, 0.0, 0.0)


# --- steps in the ball, and around an anchor ---


@both_tails
@any_penalty
@pytest.mark.parametrize("weight", [0.0, 0.8])
@generated
@given(
    w=vectors(5),
    c=vectors(5),
    anchor=vectors(5),
    tail=st.floats(-5.0, 5.0),
    step=st.sampled_from([1e-3, 0.1, 2.0]),
    radius=st.sampled_from([1e-3, 0.5, 3.0, 100.0, math.inf]),
)
def test_a_step_is_settled_as_the_prox_in_the_ball_is(has_tail, l1, l2, weight, w, c, anchor, tail, step, radius):
    form, X = (
        make_thresholded(w, c, anchor=anchor, weight=weight, has_tail=has_tail),
        STORAGE["dense"](np.eye(6, 5)),
    )
    ahead = np.append(w[:-1], tail) if has_tail else w
    form.scalars[th.MOVED] = abs(tail - w[-1]) if has_tail else 0.0
    regularizer = regularizer_of(l1, l2, has_tail=has_tail, anchor=anchor, weight=weight)
    expected = prox_in_ball(regularizer, ahead, step, c, radius)
    in_ball.settle_thresholded(form, step, l1, l2, tail, radius, has_tail)
    got, scale = explicit(form, has_tail=has_tail), 1.0 + np.abs([*w, *c, *anchor]).max()
    np.testing.assert_allclose(got, expected, rtol=0.0, atol=1e-11 * scale)
    if not has_tail:
        np.testing.assert_allclose(summed(X, form), got, rtol=1e-9, atol=1e-11 * scale)
    distance = np.linalg.norm(got - c)
    assert form.scalars[th.LOW] <= distance * (1.0 + 1e-12) + 1e-14 * scale
    assert form.scalars[th.HIGH] >= distance * (1.0 - 1e-12) - 1e-14 * scale
    assert form.scalars[th.MOVED] == 0.0
    assert form.scalars[th.SUM_TAIL] == form.scalars[th.TAIL]


@any_storage
@pytest.mark.parametrize("radius", [1.0, math.inf])
@any_penalty
def test_the_bracket_holds_the_distance_step_after_step(storage, radius, l1, l2):
    rng, X = np.random.default_rng(5), matrix_of(6)
    data, c = STORAGE[storage](X), rng.standard_normal(6)
    form, w, inside = make_thresholded(c, c), c, 0
    for _ in range(200):
        row, step = rng.integers(0, 6), 0.05
        factor = 0.1 * rng.standard_normal()
        if th.needs_rebase(form, step, l1):
            th.rebase(form)
        th.note_thresholded_move(form, abs(factor) * np.linalg.norm(X[row]))
        th.add_thresholded(data, form, row, factor)
        in_ball.settle_thresholded(form, step, l1, l2, 0.0, radius, False)
        w = prox_in_ball(regularizer_of(l1, l2), w + factor * X[row], step, c, radius)
        np.testing.assert_allclose(explicit(form), w, rtol=0.0, atol=1e-9)
        assert form.scalars[th.LOW] - 1e-9 <= np.linalg.norm(w - c) <= form.scalars[th.HIGH] + 1e-9
        inside += form.scalars[th.LOW] < form.scalars[th.HIGH]
    assert inside >= (1 if radius == 1.0 else 200)  # steps at which nothing was measured


def test_way_of_ended_and_reach_are_parts_of_the_step():
    plain = make_thresholded(np.array([2.0]), np.array([1.0]))
    assert in_ball.ended(in_ball.way_of(plain, 0.5, 1.0, 0.0, 1.0), 2.0, 1.0, 0.0) == 1.5
    assert in_ball.ended(in_ball.way_of(plain, 0.5, 1.0, 2.0, 0.5), 2.0, 1.0, 0.0) == pytest.approx(1.25 / 1.5)
    form = make_thresholded(np.array([3.0, -4.0]), np.array([1.0, 1.0]), anchor=np.array([0.0, 2.0]), weight=2.0)
    way = in_ball.way_of(form, 0.5, 0.0, 0.0, 1.0)
    assert in_ball.tail_ended(form, way, 3.0) == 1.5
    assert in_ball.squared_way(form, way) == pytest.approx(0.5**2 + 2.0**2)
    w = regularizer_of(1.0, 0.0, anchor=np.array([0.0, 2.0]), weight=2.0).prox(np.array([3.0, -4.0]), 0.5)
    assert in_ball.reach(form, 0.5, 1.0, 0.0, 0.0, 1.0) == pytest.approx(np.linalg.norm(w - 1.0))
    assert in_ball.reach(form, 0.5, 1.0, 0.0, 0.0, 1e-12) == pytest.approx(0.0, abs=1e-11)


def test_take_moves_every_coordinate_and_adds_it_to_its_sum():
    v, c = np.array([3.0, -4.0, 0.2, 0.0]), np.array([1.0, 1.0, 0.0, -2.0])
    form = make_thresholded(v, c)
    form.past[:] = 10.0
    way = in_ball.way_of(form, 0.5, 1.0, 0.4, 0.7)
    expected = [in_ball.ended(way, *place) for place in zip(v, c, c, strict=True)]
    assert in_ball.take(form, way) == pytest.approx(np.sum((np.array(expected) - c) ** 2))
    np.testing.assert_allclose(form.v, expected, rtol=1e-14)
    np.testing.assert_allclose(form.past, 10.0 + np.array(expected), rtol=1e-14)


def test_squared_from_center_is_that_of_the_values():
    form = make_thresholded(np.array([3.0, -0.55, 0.0]), np.full(3, 0.3))
    for _ in range(10):
        th.pass_time(form, 0.1, 1.0, 0.5)
    size = np.sum((explicit(form) - 0.3) ** 2)
    assert th.squared_from_center(form) == pytest.approx(size, rel=1e-12)
    assert th.squared_from_center(form) == pytest.approx(size, rel=1e-12)


def test_begin_table_makes_potentials_of_values():
    form = grown(10, 1.0, 0.0, v=(3.0, -0.55, 0.0))
    th.begin_table(form)
    np.testing.assert_array_equal(explicit(form), form.v)
    assert th.gathered(form, 3.0, th.line_now(form)) == 0.0


@pytest.mark.parametrize("n_steps", [0, 7])
def test_write_out_ends_on_the_sphere_and_closes_the_bracket(n_steps):
    form = make_thresholded(np.array([3.0, -4.0]), np.array([1.0, 1.0]))
    for _ in range(n_steps):
        th.pass_time(form, 0.1, 1.0, 0.0)
    in_ball.write_out(form, 0.1, 1.0, 0.0, 0.0, 0.5, in_ball.reach(form, 0.1, 1.0, 0.0, 0.0, 1.0))
    assert th.measure(form) == pytest.approx(0.5, rel=1e-9)
    assert form.scalars[th.LOW] == form.scalars[th.HIGH] == pytest.approx(0.5, rel=1e-9)
    assert form.scalars[th.SIZE] >= np.abs(explicit(form)).max()


@pytest.mark.parametrize("seed", range(300))
def test_largest_theta_ends_on_the_sphere_or_within_it_at_one(seed):
    rng = np.random.default_rng(seed)
    v, c = (rng.standard_normal(5) * 10.0 ** rng.uniform(-3, 6) for _ in range(2))
    step, l1, l2 = 10.0 ** rng.uniform(-5, 5), 10.0 ** rng.uniform(-5, 5), rng.choice([0.0, 1e-5, 1.0, 1e5])
    radius = np.linalg.norm(v - c) * 10.0 ** rng.uniform(-8, 1)
    form = make_thresholded(v, c)
    unbounded = in_ball.reach(form, step, l1, l2, 0.0, 1.0)
    theta = in_ball.largest_theta(form, step, l1, l2, 0.0, radius, unbounded)
    far = in_ball.reach(form, step, l1, l2, 0.0, theta)
    assert 0.0 < theta <= 1.0
    assert far <= radius * (1.0 + 1e-9)
    # Where the distance is not straight at all, θ is as exact as a double can be.
    assert theta == 1.0 or in_ball.reach(form, step, l1, l2, 0.0, theta * (1.0 + 1e-12)) >= radius * (1.0 - 1e-9)


@pytest.mark.parametrize("size", [1e10, 1e70, 1e139])
@both_tails
def test_a_step_ends_on_the_edge_of_the_ball_however_far_it_went(size, has_tail):
    c = np.array([1.0, 1.0, -1.0, 0.5])[: 3 + has_tail]
    ahead = c + size * np.array([1.0, -2.0, 0.5, 1.0])[: 3 + has_tail]
    form = make_thresholded(np.append(ahead[:3], 0.5)[: 3 + has_tail], c, has_tail=has_tail)
    form.scalars[th.MOVED] = size
    in_ball.settle_thresholded(form, 0.1, 0.7, 0.2, ahead[-1], 0.5, has_tail)
    expected = prox_in_ball(regularizer_of(0.7, 0.2, has_tail=has_tail), ahead, 0.1, c, 0.5)
    np.testing.assert_allclose(explicit(form, has_tail=has_tail), expected, atol=1e-9)


def test_current_thresholded_and_total_thresholded_write_what_the_lines_say():
    form, out = grown(10, 1.0, 0.0, v=(3.0, -0.55, 0.0)), np.empty(3)
    th.current_thresholded(form, out)
    np.testing.assert_allclose(out, [2.0, 0.0, 0.0], atol=1e-15)
    th.total_thresholded(form, out)
    np.testing.assert_allclose(out, [24.5, -(0.45 + 0.35 + 0.25 + 0.15 + 0.05), 0.0], rtol=1e-12)
