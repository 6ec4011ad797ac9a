import numpy as np
import pytest

from stoic.truncation import Levels, truncate, truncated_mean


@pytest.mark.parametrize("shape", [(2,), (3, 4)])
def test_an_estimate_on_the_sphere_is_kept(shape):
    reference = np.ones(shape)
    x = reference.copy()
    x.flat[:2] += [3.0, -4.0]
    estimate, truncated = truncate(x, reference, 5.0)
    assert estimate is x
    assert truncated is False


@pytest.mark.parametrize("shape", [(2,), (3, 4)])
def test_an_estimate_outside_gives_way_to_the_reference(shape):
    reference = np.ones(shape)
    x = reference.copy()
    x.flat[:2] += [3.0, -4.0]
    estimate, truncated = truncate(x, reference, np.nextafter(5.0, 0.0))
    assert estimate is reference
    assert truncated is True


@pytest.mark.parametrize("wild", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("radius", [1.0, np.inf])
def test_a_distance_that_is_not_finite_is_truncated_at_any_radius(wild, radius):
    reference = np.zeros(2)
    estimate, truncated = truncate(np.array([0.0, wild]), reference, radius)
    assert estimate is reference
    assert truncated


def test_an_infinite_radius_keeps_every_finite_estimate():
    x = np.array([1e150, -1e150])
    assert truncate(x, np.zeros(2), np.inf) == (x, False)


def test_a_radius_that_is_nan_truncates():
    assert truncate(np.zeros(2), np.zeros(2), np.nan)[1]


def test_truncation_changes_neither_argument():
    x, reference = np.array([5.0, 0.0]), np.array([1.0, 0.0])
    x.flags.writeable = reference.flags.writeable = False
    truncate(x, reference, 1.0)
    np.testing.assert_array_equal(x, [5.0, 0.0])
    np.testing.assert_array_equal(reference, [1.0, 0.0])


def test_levels_grow_with_the_distance_from_the_start():
    levels = Levels(C_g=2.0, L_g=0.5, slack_y=1.0, slack_z=3.0)
    assert [levels.radius_y(distance) for distance in (0.0, 10.0)] == [1.0, 21.0]
    assert [levels.radius_z(distance) for distance in (0.0, 10.0)] == [3.0, 8.0]


def test_the_mean_of_truncated_parts_has_the_reference_in_the_place_of_outliers():
    parts, reference = np.array([[1.0, 0.0], [9.0, 0.0], [np.nan, 0.0], [3.0, 4.0]]), np.array([0.0, 1.0])
    mean, n_cut = truncated_mean(parts, reference, 5.0)
    np.testing.assert_allclose(mean, (parts[0] + 2 * reference + parts[3]) / 4)
    assert n_cut == 2


def test_a_single_part_is_truncated_as_it_stands():
    x, reference = np.array([[1.0, 0.0]]), np.zeros(2)
    assert np.shares_memory(truncated_mean(x, reference, 2.0)[0], x)
    assert truncated_mean(x, reference, 0.5) == (reference, 1)
