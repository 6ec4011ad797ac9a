"""What every inner part keeps to: derivatives, blocks, products, whole sums, draws and untouched inputs."""

import numpy as np
import pytest
from scipy import sparse

from stoic import InvalidParameter
from stoic.inners import FunctionInner, GroupLoss, GroupSoftmax, Moments
from stoic.losses import Absolute, Huber, Quantile
from stoic.protocols import draws_groups

N, D = 60, 5
RNG = np.random.default_rng(20240)
X = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.6)
X[7] = 0.0
Y = RNG.normal(size=N)
GROUPS = np.repeat([3, 1, 2], [30, 10, 20])[RNG.permutation(N)]
WEIGHT = RNG.random(N) + 0.1
CLASSES = RNG.integers(0, 3, N)
SIGNS = np.where(Y > 0, 1.0, -1.0)


def value_of_ratio(w, samples):
    x, y = samples
    return np.stack([np.square(x @ w - y), np.exp(-0.1 * np.square(x @ w)), np.sin(x @ w)], axis=1)


def jacobian_of_ratio(w, samples):
    x, y = samples
    t = x @ w
    slopes = np.stack([2 * (t - y), -0.2 * t * np.exp(-0.1 * t * t), np.cos(t)], axis=1)
    return slopes[:, :, None] * x[:, None, :]


def vjp_of_ratio(w, samples, q):
    return q @ jacobian_of_ratio(w, samples).mean(axis=0)


def draw_normal(size, rng):
    return rng.normal(size=(size, D)), rng.normal(size=size)


INNERS = {
    "dense": lambda: GroupLoss(X, Y, GROUPS),
    "one group": lambda: GroupLoss(X, Y),
    "Fortran order": lambda: GroupLoss(np.asfortranarray(X), Y, GROUPS),
    "strided": lambda: GroupLoss(np.repeat(X, 2, axis=1)[:, ::2], Y, GROUPS),
    "float32": lambda: GroupLoss(X.astype(np.float32), Y, GROUPS),
    "integers": lambda: GroupLoss((10 * X).astype(int), Y, GROUPS),
    "CSR": lambda: GroupLoss(sparse.csr_array(X), Y, GROUPS),
    "CSR matrix": lambda: GroupLoss(sparse.csr_matrix(X), Y, GROUPS),
    "CSR float32": lambda: GroupLoss(sparse.csr_array(X.astype(np.float32)), Y, GROUPS),
    "CSR intercept": lambda: GroupLoss(sparse.csr_array(X), Y, GROUPS, intercept=True),
    "CSR weights": lambda: GroupLoss(sparse.csr_array(X), Y, GROUPS, sample_weight=WEIGHT),
    "CSR standardized": lambda: GroupLoss(
        sparse.csr_array(X), Y, GROUPS, intercept=True, center=X.mean(axis=0), scale=X.std(axis=0)
    ),
    "weights": lambda: GroupLoss(X, Y, GROUPS, sample_weight=WEIGHT),
    "intercept": lambda: GroupLoss(X, Y, GROUPS, intercept=True),
    "float32 intercept": lambda: GroupLoss(X.astype(np.float32), Y, GROUPS, intercept=True),
    "huber": lambda: GroupLoss(X, Y, GROUPS, loss=Huber(0.5)),
    "absolute": lambda: GroupLoss(X, Y, GROUPS, loss=Absolute(0.5)),
    "quantile": lambda: GroupLoss(X, Y, GROUPS, loss=Quantile(0.8, 0.5)),
    "logistic": lambda: GroupLoss(X, SIGNS, GROUPS, loss="logistic", intercept=True),
    "softmax": lambda: GroupSoftmax(X, CLASSES, GROUPS, n_classes=3, intercept=True),
    "softmax CSR weights": lambda: GroupSoftmax(
        sparse.csr_array(X), CLASSES, GROUPS, n_classes=3, sample_weight=WEIGHT
    ),
    "moments": lambda: Moments(X),
    "moments CSR": lambda: Moments(sparse.csr_array(X)),
    "function": lambda: FunctionInner(value_of_ratio, jacobian_of_ratio, (3, D), data=(X, Y)),
    "function stream": lambda: FunctionInner(
        value_of_ratio, jacobian_of_ratio, (3, D), draw=draw_normal, vjp=vjp_of_ratio
    ),
}


@pytest.fixture(params=INNERS)
def inner(request):
    return INNERS[request.param]()


@pytest.fixture
def w(inner):
    return np.random.default_rng(1).normal(size=inner.shape[1])


def batches(inner):
    drawn = [inner.draw(7, np.random.default_rng(5))]
    return drawn if inner.n_samples is None else [*drawn, inner.everything()]


def test_shapes_and_types_follow_the_protocol(inner, w):
    p, d = inner.shape
    assert inner.n_unpenalized in (0, 3 if isinstance(inner, GroupSoftmax) else 1)
    for batch in batches(inner):
        assert inner.value(w, batch).shape == (1, p)
        assert inner.jacobian(w, batch).shape == (1, p, d)
        assert inner.vjp(w, batch, np.ones(p)).shape == (d,)
        for answer in (inner.value(w, batch), inner.jacobian(w, batch), inner.vjp(w, batch, np.ones(p))):
            assert answer.dtype == np.float64
    blocks = inner.draw(6, np.random.default_rng(0))
    assert inner.value(w, blocks, 3).shape == (3, p)
    assert inner.jacobian(w, blocks, 3).shape == (3, p, d)


def test_the_jacobian_matches_central_differences_on_the_same_batch(inner, w):
    h = 1e-6
    for batch in batches(inner):
        columns = [inner.value(w + h * e, batch)[0] - inner.value(w - h * e, batch)[0] for e in np.eye(len(w))]
        differences = np.stack(columns, axis=1) / (2 * h)
        np.testing.assert_allclose(inner.jacobian(w, batch)[0], differences, rtol=1e-5, atol=2e-5)


def test_the_vector_jacobian_product_is_that_of_the_jacobian(inner, w):
    q = np.random.default_rng(2).normal(size=inner.shape[0])
    for batch in batches(inner):
        expected = q @ inner.jacobian(w, batch)[0]
        np.testing.assert_allclose(inner.vjp(w, batch, q), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("blocks", [1, 2, 4, 5, 12])
def test_block_means_average_to_the_mean_with_their_sizes_as_weights(inner, w, blocks):
    size = 12
    batch = inner.draw(size, np.random.default_rng(3))
    sizes = [len(part) for part in np.array_split(np.arange(size), blocks)]
    for method in (inner.value, inner.jacobian):
        means = method(w, batch, blocks)
        whole = np.tensordot(sizes, means, axes=1) / size
        np.testing.assert_allclose(whole, method(w, batch)[0], rtol=1e-12, atol=1e-13)


def test_a_block_is_the_mean_of_its_consecutive_samples(inner, w):
    batch = inner.draw(11, np.random.default_rng(4))
    per_sample = inner.value(w, batch, 11), inner.jacobian(w, batch, 11)
    for method, samples in zip((inner.value, inner.jacobian), per_sample, strict=True):
        expected = [part.mean(axis=0) for part in np.array_split(samples, 3)]
        np.testing.assert_allclose(method(w, batch, 3), expected, rtol=1e-12, atol=1e-13)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(inner, w):
    values = [inner.value(w, inner.draw(9, np.random.default_rng(seed))) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(values[0], values[1])
    assert not np.array_equal(values[0], values[2])


def test_evaluation_leaves_the_point_and_the_weights_alone_and_takes_read_only_ones(inner, w):
    q = np.ones(inner.shape[0])
    w.flags.writeable = q.flags.writeable = False
    for batch in batches(inner):
        inner.value(w, batch)
        inner.jacobian(w, batch)
        inner.vjp(w, batch, q)


def test_evaluating_twice_gives_the_same_bits(inner, w):
    for batch in batches(inner):
        first = inner.value(w, batch), inner.jacobian(w, batch), inner.vjp(w, batch, np.ones(inner.shape[0]))
        again = inner.value(w, batch), inner.jacobian(w, batch), inner.vjp(w, batch, np.ones(inner.shape[0]))
        for one, other in zip(first, again, strict=True):
            np.testing.assert_array_equal(one, other)


def test_answers_belong_to_the_caller(inner, w):
    for batch in batches(inner):
        before = inner.value(w, batch).copy(), inner.vjp(w, batch, np.ones(inner.shape[0])).copy()
        inner.value(w, batch)[:] = 0.0
        inner.jacobian(w, batch)[:] = 0.0
        inner.vjp(w, batch, np.ones(inner.shape[0]))[:] = 0.0
        np.testing.assert_array_equal(before[0], inner.value(w, batch))
        np.testing.assert_array_equal(before[1], inner.vjp(w, batch, np.ones(inner.shape[0])))


def test_the_cost_of_a_draw_is_the_number_of_its_data_points(inner):
    per_sample = inner.shape[0] if isinstance(inner, GroupLoss | GroupSoftmax) else 1
    assert inner.cost(8) == 8 * per_sample


@pytest.mark.parametrize("name", [name for name in INNERS if name != "function stream"])
def test_draws_are_unbiased(name):
    """|mean − exact| <= 6 standard errors; by the normal limit a false alarm has probability 2e-7 in all."""
    inner = INNERS[name]()
    w = np.random.default_rng(1).normal(size=inner.shape[1])
    samples = inner.value(w, inner.draw(4000, np.random.default_rng(8)), 4000)
    error = samples.mean(axis=0) - inner.value(w, inner.everything())[0]
    assert (np.abs(error) <= 6 * samples.std(axis=0) / np.sqrt(4000)).all()


@pytest.mark.parametrize(("dense", "sparse_one"), [("dense", "CSR"), ("weights", "CSR weights")])
def test_dense_and_csr_agree_to_rounding_on_the_same_seed(dense, sparse_one):
    one, other = INNERS[dense](), INNERS[sparse_one]()
    w = np.random.default_rng(6).normal(size=one.shape[1])
    for a, b in zip(batches(one), batches(other), strict=True):
        for method in ("value", "jacobian"):
            np.testing.assert_allclose(
                getattr(one, method)(w, a), getattr(other, method)(w, b), rtol=1e-12, atol=1e-14
            )


# --- some groups without the others ---

SOME = np.array([2, 0, 2])
DRAWS_GROUPS = [name for name, make in INNERS.items() if draws_groups(make()) and make().shape[0] == 3]
by_group = pytest.mark.parametrize("name", DRAWS_GROUPS)


def test_parts_over_rows_in_groups_draw_some_groups_and_no_others_do():
    assert [name for name, make in INNERS.items() if isinstance(make(), GroupLoss | GroupSoftmax)] == [
        name for name, make in INNERS.items() if draws_groups(make())
    ]
    assert len(DRAWS_GROUPS) > 15


@by_group
def test_a_batch_of_some_groups_is_evaluated_for_these_alone(name):
    inner = INNERS[name]()
    d, rng = inner.shape[1], np.random.default_rng(1)
    w, q, batch = rng.normal(size=d), rng.normal(size=3), inner.draw(6, rng, groups=SOME)
    assert inner.value(w, batch).shape == (1, 3)
    assert inner.value(w, batch, 2).shape == (2, 3)
    assert inner.jacobian(w, batch, 3).shape == (3, 3, d)
    np.testing.assert_allclose(inner.vjp(w, batch, q), q @ inner.jacobian(w, batch)[0], rtol=1e-12, atol=1e-13)


@by_group
def test_rows_of_some_groups_have_the_law_of_those_groups(name):
    """|mean − exact| <= 6 standard errors; by the normal limit a false alarm has probability 2e-7 in all."""
    inner = INNERS[name]()
    w = np.random.default_rng(1).normal(size=inner.shape[1])
    samples = inner.value(w, inner.draw(4000, np.random.default_rng(8), groups=SOME), 4000)
    error = samples.mean(axis=0) - inner.value(w, inner.everything())[0, SOME]
    assert (np.abs(error) <= 6 * samples.std(axis=0) / np.sqrt(4000)).all()


@by_group
def test_all_groups_by_their_numbers_are_the_draw_of_all(name):
    inner = INNERS[name]()
    w = np.random.default_rng(1).normal(size=inner.shape[1])
    one, other = (inner.draw(5, np.random.default_rng(2), groups=groups) for groups in (None, np.arange(3)))
    np.testing.assert_array_equal(inner.value(w, one), inner.value(w, other))


@by_group
def test_the_cost_of_some_groups_is_the_number_of_their_data_points(name):
    inner = INNERS[name]()
    assert inner.cost(8, SOME) == 24 == np.size(inner.draw(8, np.random.default_rng(0), groups=SOME).rows)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (np.array([0, 3]), "numbered from 0 to 2"),
        (np.array([-1]), "numbered from 0 to 2"),
        (np.array([], dtype=int), "not a nonempty array of the numbers of groups"),
        (np.array([0.0]), "not a nonempty array of the numbers of groups"),
        (np.array([[0]]), "not a nonempty array of the numbers of groups"),
    ],
)
def test_groups_that_do_not_exist_are_refused(groups, words):
    with pytest.raises(InvalidParameter, match=words):
        INNERS["dense"]().draw(2, np.random.default_rng(0), groups=groups)
