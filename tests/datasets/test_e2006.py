"""E2006-tfidf is read from its files, packed or not, and nothing else passes for it."""

import bz2

import numpy as np
import pytest

from stoic.datasets.e2006 import N_FEATURES, N_TEST, N_TRAIN, SOURCE, load_e2006
from stoic.errors import InvalidParameter, InvalidProblem


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("STOIC_CACHE_DIR", str(tmp_path / "cache"))


def rows(n, last):
    """Return a LIBSVM file of n rows whose largest index is `last`."""
    lines = [b"%.3f %d:0.5" % (-4.0 + i / n, i + 1) for i in range(n - 1)]
    return b"\n".join([*lines, b"-3.5 1:0.25 %d:1" % last]) + b"\n"


TRAIN, TEST = rows(N_TRAIN, 150_360), rows(N_TEST, 150_358)  # the real test file, too, lacks the last two columns


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "E2006.train").write_bytes(TRAIN)
    (folder / "E2006.test").write_bytes(TEST)
    return folder


def test_both_parts_have_the_known_shape(folder):
    split = load_e2006(folder)
    assert split.X_train.shape == (16_087, 150_360) == (N_TRAIN, N_FEATURES)
    assert split.X_test.shape == (3_308, 150_360)
    assert split.y_train.shape == (16_087,)
    assert split.y_test.shape == (3_308,)


def test_values_are_those_of_the_files(folder):
    X_train, y_train, X_test, _ = load_e2006(str(folder))
    assert X_train[[0], :].indices.tolist() == [0]
    assert X_train[[-1], :].indices.tolist() == [0, 150_359]
    assert X_test[[-1], :].data.tolist() == [0.25, 1.0]
    assert y_train[0] == -4.0


def test_packed_files_are_read_and_come_first(folder):
    altered = TEST.replace(b"-3.5 1:0.25", b"-7.5 1:0.25")
    (folder / "E2006.test.bz2").write_bytes(bz2.compress(altered))
    assert load_e2006(folder).y_test[-1] == -7.5


def test_a_second_reading_is_from_the_cache(folder, tmp_path):
    first = load_e2006(folder)
    assert len(list((tmp_path / "cache" / "data").iterdir())) == 2
    second = load_e2006(folder)
    np.testing.assert_array_equal(first.X_train.indices, second.X_train.indices)


def test_without_the_cache_nothing_is_kept(folder, tmp_path):
    load_e2006(folder, cache=False)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("part", ["train", "test"])
def test_a_missing_file_is_refused_with_its_names_and_its_source(part, folder):
    (folder / f"E2006.{part}").unlink()
    with pytest.raises(InvalidProblem) as refused:
        load_e2006(folder)
    for known in (str(folder), f"E2006.{part}.bz2", f"E2006.{part};", SOURCE):
        assert known in str(refused.value)
    assert SOURCE == "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/regression.html#E2006-tfidf"


def test_both_files_are_looked_for_before_one_is_read(folder):
    (folder / "E2006.train").write_bytes(b"damaged\n")
    (folder / "E2006.test").unlink()
    with pytest.raises(InvalidProblem, match=r"E2006\.test\.bz2"):
        load_e2006(folder)


def test_a_missing_folder_is_refused_with_the_names(tmp_path):
    with pytest.raises(InvalidProblem, match=r"nowhere has neither E2006\.train\.bz2 nor E2006\.train;"):
        load_e2006(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["E2006.train", "E2006.test"])
def test_a_file_with_fewer_rows_is_refused(name, folder):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[content.index(b"\n") + 1 :])
    with pytest.raises(
        InvalidProblem, match=r"rows, but (16,087|3,308) are required; get the file again from https"
    ):
        load_e2006(folder)


def test_a_file_cut_within_a_pair_is_refused_with_the_line(folder):
    (folder / "E2006.train").write_bytes(TRAIN[: TRAIN.rindex(b":") + 1])
    with pytest.raises(InvalidProblem, match=r"E2006\.train, line 16087: "):
        load_e2006(folder)


def test_a_cut_off_packed_file_is_refused(folder):
    (folder / "E2006.train.bz2").write_bytes(bz2.compress(TRAIN)[:-100])
    with pytest.raises(InvalidProblem, match=r"E2006\.train\.bz2: the file is cut off"):
        load_e2006(folder)


def test_more_features_than_e2006_has_are_refused(folder):
    (folder / "E2006.test").write_bytes(rows(N_TEST, 150_361))
    with pytest.raises(InvalidProblem, match=r"line 3308: index 150361 is beyond n_features=150360"):
        load_e2006(folder)


def test_what_is_no_folder_name_is_refused():
    with pytest.raises(InvalidParameter, match="None"):
        load_e2006(None)
