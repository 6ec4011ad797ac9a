"""Rows held out: how many of each group, which classes, and that a seed says which."""

import numpy as np

from stoic.fitting.holding_out import hold_out
from stoic.fitting.schemas import FileRows

RNG = np.random.default_rng(0)


def rows(groups, y=None, weight=None):
    n = len(groups)
    return FileRows(
        np.arange(n, dtype=float)[:, None], np.arange(n, dtype=float) if y is None else y, groups, weight
    )


def test_a_fifth_of_each_group_is_held_out_and_no_row_is_lost_or_in_both_parts():
    groups = np.repeat(["a", "b", "c"], [100, 37, 5])
    split = hold_out(rows(groups), 0, classifies=False)
    held = {name: int((split.test.groups == name).sum()) for name in "abc"}
    assert held["a"] == 20
    assert held["b"] in {7, 8}
    assert held["c"] == 1
    both = np.concatenate([split.train.X[:, 0], split.test.X[:, 0]])
    assert sorted(both.tolist()) == list(range(142))
    assert split.n_small == 0


def test_the_parts_keep_targets_and_weights_beside_their_rows():
    weight = RNG.random(50) + 0.5
    split = hold_out(rows(np.zeros(50), weight=weight), 1, classifies=False)
    for part in split[:2]:
        np.testing.assert_array_equal(part.y, part.X[:, 0])
        np.testing.assert_array_equal(part.weight, weight[part.X[:, 0].astype(int)])


def test_small_groups_give_a_fifth_together():
    split = hold_out(rows(np.arange(100)), 0, classifies=False)
    assert len(split.test.y) == 20
    assert (split.n_small, split.are_all_small) == (100, True)


def test_a_seed_says_which_rows_and_another_says_others():
    groups = np.zeros(200)
    first, again, other = (hold_out(rows(groups), seed, classifies=False).test.X[:, 0] for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert set(first) != set(other)


def test_classes_are_held_out_in_proportion_and_never_whole():
    groups, y = np.repeat(["a", "b"], 100), np.array((["x"] * 90 + ["y"] * 10) * 2, dtype=object)
    y[0] = "rare"
    for seed in range(10):
        split = hold_out(rows(groups, y), seed, classifies=True)
        assert set(split.train.y) == {"x", "y", "rare"}
        for name in "ab":
            assert ((split.test.groups == name) & (split.test.y == "y")).sum() == 2


def test_rows_without_weight_are_in_neither_part():
    weight = np.tile([0.0, 1.0], 50)
    split = hold_out(rows(np.zeros(100), weight=weight), 0, classifies=False)
    assert (len(split.train.y), len(split.test.y)) == (40, 10)
    assert (split.test.weight > 0.0).all()
