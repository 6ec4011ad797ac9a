"""LIBSVM files are read as they stand, or refused with the file and the line; what was read is kept."""

import bz2
import gzip
import os
import sys
import time

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from stoic.datasets import libsvm, parsed_cache as kept
from stoic.datasets.libsvm import read_libsvm
from stoic.errors import InvalidParameter, InvalidProblem
from stoic.storage.archive import read_archive, write_archive

ROWS = b"1.5 1:2 3:-1  # a comment\n\n-2\t2:1e3\n"
X_OF_ROWS, Y_OF_ROWS = [[2.0, 0.0, -1.0], [0.0, 1000.0, 0.0]], [1.5, -2.0]
PACKERS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Return the folder of kept data, which is not there yet."""
    monkeypatch.setenv("STOIC_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "data"


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file and gives its path."""

    def write(content, name="rows.svm"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


@pytest.fixture
def read(write):
    """Return a function that reads content as a file."""
    return lambda content, name="rows.svm", **options: read_libsvm(write(content, name), cache=False, **options)


@pytest.fixture
def refused(write):
    """Return a function that gives the message with which content is refused."""

    def refused(content, name="rows.svm", **options):
        path = write(content, name)
        with pytest.raises(InvalidProblem) as error:
            read_libsvm(path, cache=False, **options)
        message = str(error.value)
        assert message.startswith(str(path))
        assert message.endswith(".")
        return message

    return refused


def assert_rows(found):
    X, y = found
    assert X.toarray().tolist() == X_OF_ROWS
    assert y.tolist() == Y_OF_ROWS


# What is read


@pytest.mark.parametrize("suffix", PACKERS)
def test_plain_and_compressed_files_give_the_same(suffix, read):
    assert_rows(read(PACKERS[suffix](ROWS), f"rows{suffix}"))


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
def test_compressed_parts_one_after_another_are_one_file(suffix, read):
    pack = PACKERS[suffix]
    assert_rows(read(pack(ROWS[:20]) + pack(ROWS[20:]), f"rows{suffix}"))


def test_the_result_is_a_csr_array_of_float64_with_small_indices(read):
    X, y = read(ROWS)
    assert type(X).__name__ == "csr_array"
    assert X.dtype == y.dtype == np.float64
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert X.has_sorted_indices
    X.data[0] = y[0] = 7.0  # both can be written to


def test_what_scikit_learn_writes_is_read_as_scikit_learn_reads_it(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 30)) * (rng.random((50, 30)) < 0.3)
    path = tmp_path / "dumped"
    with path.open("wb") as file:
        dump_svmlight_file(X, rng.standard_normal(50), file, zero_based=False, comment="made by a test")
    found, labels = read_libsvm(path, n_features=30)
    expected, expected_labels = load_svmlight_file(str(path), n_features=30, zero_based=False)
    np.testing.assert_array_equal(found.toarray(), expected.toarray())
    np.testing.assert_array_equal(labels, expected_labels)
    np.testing.assert_allclose(found.toarray(), X, rtol=1e-15)


@pytest.mark.parametrize(
    ("content", "X", "y"),
    [
        (b"1 1:2\r\n2 2:3\r\n", [[2, 0], [0, 3]], [1, 2]),
        (b"1 1:2", [[2]], [1]),
        (b"1 1:2 2:3.", [[2, 3]], [1]),
        (b"  1   1:2\t 2:3 \t\n", [[2, 3]], [1]),
        (b"# first\n#\n1 1:2 #:3 4:5\n   \n", [[2]], [1]),
        ("1 1:2 # naïve — 日本\n".encode(), [[2]], [1]),
        (b"+1 +1:+.5 02:-1E-2\n", [[0.5, -0.01]], [1]),
        (b"1\n2 2:1\n3\n", [[0, 0], [0, 1], [0, 0]], [1, 2, 3]),
        (b"1 1:1e-400 2:-0\n", [[0, 0]], [1]),
        (b"1 1:0.1000000000000000055511151231257827021181583404541015625\n", [[0.1]], [1]),
    ],
)
def test_the_format_leaves_some_freedom(content, X, y, read):
    found, labels = read(content)
    assert found.toarray().tolist() == X
    assert labels.tolist() == y


def test_zeros_that_are_listed_are_stored(read):
    assert read(b"1 1:0 2:1\n")[0].nnz == 2


def test_a_file_that_counts_from_zero_is_read_if_told_so(read):
    X, _ = read(b"1 0:2 1:3\n", zero_based=True)
    assert X.toarray().tolist() == [[2.0, 3.0]]


def test_n_features_pads_the_matrix(read):
    assert read(b"1 2:5\n", n_features=4)[0].toarray().tolist() == [[0.0, 5.0, 0.0, 0.0]]
    assert read(b"1\n", n_features=2)[0].shape == (1, 2)
    assert read(b"1 1:2\n", n_features=2, zero_based=True)[0].shape == (1, 2)


def test_the_largest_index_is_read(read):
    X, _ = read(b"1 2147483647:3\n")
    assert X.shape == (1, 2**31 - 1)
    assert X.indices.tolist() == [2**31 - 2]
    assert read(b"1 2147483647:3\n", zero_based=True)[0].shape == (1, 2**31)


def test_what_is_not_finite_is_read_if_told_so(read):
    X, y = read(b"nan 1:inf 2:-Infinity 3:NaN 4:1e999\n-inf 1:1\n", allow_nonfinite=True)
    np.testing.assert_array_equal(X.toarray(), [[np.inf, -np.inf, np.nan, np.inf], [1.0, 0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(y, [np.nan, -np.inf])


# What is refused

BAD_LINES = {
    "no colon": (b"1 12", "'12' is not a pair index:value"),
    "a cut pair": (b"1 12:", "the value in '12:' is not a number"),
    "a cut exponent": (b"1 1:2e", "the value in '1:2e' is not a number"),
    "no index": (b"1 :3", "the index in ':3' is not a whole number"),
    "two colons": (b"1 1:2:3", "the value in '1:2:3' is not a number"),
    "a space after the colon": (b"1 1: 2", "the value in '1:' is not a number"),
    "a pair in place of the label": (b"1:2 2:3", "the label '1:2' is not a number"),
    "a word as label": (b"spam 1:2", "the label 'spam' is not a number"),
    "two labels": (b"1,2 1:2", "the label '1,2' is not a number"),
    "a word as value": (b"1 1:spam", "the value in '1:spam' is not a number"),
    "a word as index": (b"1 a:2", "the index in 'a:2' is not a whole number"),
    "a fraction as index": (b"1 1.0:2", "the index in '1.0:2' is not a whole number"),
    "hexadecimal": (b"1 1:0x10", "the value in '1:0x10' is not a number"),
    "an underscore in a value": (b"1 1:1_0", "the value in '1:1_0' is not a number"),
    "an underscore in an index": (b"1 1_0:1", "the index in '1_0:1' is not a whole number"),
    "an underscore in a label": (b"1_0 1:1", "the label '1_0' is not a number"),
    "digits of another script": ("1 1:٣".encode(), r"the value in '1:\xd9\xa3' is not a number"),
    "nan": (b"1 1:nan", "the value in '1:nan' is not finite; remove the row, or give allow_nonfinite=True"),
    "inf": (b"1 1:-inf", "the value in '1:-inf' is not finite"),
    "infinity": (b"1 1:Infinity", "the value in '1:Infinity' is not finite"),
    "overflow": (b"1 1:1e999", "the value in '1:1e999' is not finite"),
    "nan as label": (b"nan 1:2", "the label 'nan' is not finite"),
    "overflow as label": (b"-1e309 1:2", "the label '-1e309' is not finite"),
    "index zero": (b"1 0:2", "index 0 in a file that counts from 1; give zero_based=True"),
    "minus zero": (b"1 -0:2", "index 0 in a file that counts from 1"),
    "a negative index": (b"1 -3:2", "the index in '-3:2' is negative"),
    "a falling index": (b"1 2:1 1:1", "index 1 follows index 2; sort the indices"),
    "an index twice": (b"1 2:1 2:1", "index 2 follows index 2"),
    "an index above 2**31 - 1": (b"1 2147483648:1", "is above 2**31 - 1"),
    "an index above 2**64": (b"1 99999999999999999999:1", "is above 2**31 - 1"),
    "an index of 5,000 digits": (b"1 " + b"9" * 5_000 + b":1", "is above 2**31 - 1"),
    "a query": (b"1 qid:3 1:2", "'qid:3' is for ranking, which is not read"),
    "a query without a number": (b"1 qid 1:2", "'qid' is for ranking"),
    "a vertical tab": (b"1 1:2\x0b2:3", "is not a number"),
    "a form feed": (b"1\x0c1:2", r"the label '1\x0c1:2' is not a number"),
    "a carriage return within": (b"1 1:2\r2 1:3", r"the value in '1:2\r2' is not a number"),
    "a null character": (b"1 1:2\x00", r"the value in '1:2\x00' is not a number"),
    "a byte-order mark": (b"\xef\xbb\xbf1 1:2", r"the label '\xef\xbb\xbf1' is not a number"),
    "bytes that are no text": (b"1 1:2 \xff\xfe", "is not a pair index:value"),
    "a comment that is no text": (b"1 1:2 # \xff", "the comment is not UTF-8 text"),
    "binary junk": (bytes(range(48, 256)), "is not a number"),
}


@pytest.mark.parametrize(("line", "what"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_refused_with_its_number(line, what, refused):
    message = refused(b"1 1:2\n# a comment\n\n" + line + b"\n2 1:3\n")
    assert ", line 4: " in message
    assert what in message


@pytest.mark.parametrize(("line", "what"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_refused_at_the_end_of_a_file_without_a_newline(line, what, refused):
    assert ", line 2: " in refused(b"1 1:2\n" + line)


def test_the_first_of_several_bad_lines_is_named(refused):
    message = refused(b"1 1:2\n1 1:nan\n1 spam\n1 0:1\n")
    assert ", line 2: " in message
    assert "nan" in message


def test_an_index_beyond_n_features_is_refused(refused):
    message = refused(b"1 1:2\n1 4:2\n", n_features=3)
    assert "line 2: index 4 is beyond n_features=3; give a larger n_features or none" in message
    assert "line 1: index 3 is beyond" in refused(b"1 3:2\n", n_features=3, zero_based=True)


def test_a_negative_index_is_refused_in_a_file_that_counts_from_zero(refused):
    assert "is negative; indices count from 0" in refused(b"1 -1:2\n", zero_based=True)


@pytest.mark.parametrize("line", [b"1 1:nanx", b"1 1:fin", b"1 nan:1", b"1 1:i", b"tiny 1:2", b"1 1:1_0"])
def test_letters_of_nan_and_inf_make_no_other_word_a_number(line, refused):
    assert ", line 1: " in refused(line, allow_nonfinite=True)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"# only a comment\n", b"  \t\n#\n"])
@pytest.mark.parametrize("suffix", PACKERS)
def test_a_file_without_rows_is_refused(content, suffix, refused):
    message = refused(PACKERS[suffix](content), f"rows{suffix}")
    assert "the file has no rows" in message
    assert ", line" not in message


def test_a_file_without_features_is_refused(refused):
    assert "no row lists a feature" in refused(b"1\n2\n")


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
def test_a_cut_off_compressed_file_is_refused(suffix, refused):
    content = PACKERS[suffix](b"".join(b"%d 1:%d\n" % (i, i * i) for i in range(2_000)))
    for length in [*range(1, 40), *range(40, len(content), 97), *range(len(content) - 12, len(content))]:
        message = refused(content[:length], f"rows{suffix}")
        assert "cut off" in message or "damaged" in message


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
def test_a_flipped_bit_of_compressed_data_is_refused_or_one_that_means_nothing(suffix, read):
    """A date in gzip's header is one of those, and the bits that fill the last byte."""
    content, n_refused = PACKERS[suffix](ROWS), 0
    for place in range(8 * len(content)):
        altered = bytearray(content)
        altered[place // 8] ^= 1 << place % 8
        try:
            assert_rows(read(bytes(altered), f"rows{suffix}"))
        except InvalidProblem as error:
            assert f"rows{suffix}" in str(error)  # noqa: PT017 - or nothing is raised
            n_refused += 1
    assert n_refused > 8 * len(content) - 100


@pytest.mark.parametrize("junk", [b"junk", b"BZh9junk", b"\x1f\x8bjunk", ROWS])
@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
def test_junk_after_compressed_data_is_refused(suffix, junk, refused):
    refused(PACKERS[suffix](ROWS) + junk, f"rows{suffix}")


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
def test_a_file_that_is_not_compressed_is_refused_under_the_name_of_one(suffix, refused):
    assert "compressed data are damaged" in refused(ROWS, f"rows{suffix}")


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
def test_a_compressed_file_is_refused_under_the_name_of_a_plain_one(suffix, refused):
    assert ", line 1: " in refused(PACKERS[suffix](ROWS), "rows.svm")


def test_a_line_without_end_is_refused_before_it_fills_the_memory(refused, monkeypatch):
    monkeypatch.setattr(libsvm, "_LONGEST_LINE", 1_000)
    message = refused(gzip.compress(b"1 1:2\n" + bytes(10_000_000)), "rows.gz")
    assert "line 2: the line is longer than 1,000 bytes" in message


@pytest.mark.parametrize("text", [b"0" * 200_000 + b"x", b"1" * 200_000 + b".x", b"1 1:" + b"2" * 200_000 + b"e"])
def test_a_long_number_with_a_fault_is_refused_at_once(text, refused):
    refused(text + b"\n")  # a pattern that tries every split of the digits would take hours


def test_a_long_token_is_shortened_in_the_message(refused):
    assert len(refused(b"spam" * 1_000 + b" 1:2\n")) < 400


# Cut-off files, if told so


def test_of_an_incomplete_file_the_whole_lines_are_read_if_told_so(read):
    for last in (b"3 1:", b"3 1:12", b"3", b""):
        assert_rows(read(ROWS + last, allow_incomplete=True))


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
@pytest.mark.slow
def test_of_a_cut_off_compressed_file_the_whole_lines_are_read_if_told_so(suffix, read):
    rng = np.random.default_rng(0)
    content = b"".join(b"%d 1:%d\n" % (i, rng.integers(1_000_000)) for i in range(150_000))
    packed = PACKERS[suffix](content)
    _, y = read(packed[: 9 * len(packed) // 10], f"rows{suffix}", allow_incomplete=True)
    assert 50_000 < len(y) < 150_000
    np.testing.assert_array_equal(y, np.arange(len(y)))


def test_an_incomplete_file_may_still_not_be_damaged(refused):
    assert "line 1: " in refused(b"1 1:x\n2 1:", allow_incomplete=True)
    assert "damaged" in refused(bz2.compress(ROWS)[:-1] + b"\0", "rows.bz2", allow_incomplete=True)


# Arguments and surroundings


def test_a_missing_file_is_an_oserror_that_names_it(tmp_path):
    for cache in (True, False):
        with pytest.raises(FileNotFoundError, match="nothing"):
            read_libsvm(tmp_path / "nothing.svm", cache=cache)


def test_a_folder_is_an_oserror(tmp_path):
    with pytest.raises(OSError, match=tmp_path.name):
        read_libsvm(tmp_path)


@pytest.mark.parametrize("path", [None, 3, b"rows.svm", "a\0b", ["rows.svm"]])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(InvalidParameter, match="path="):
        read_libsvm(path)


@pytest.mark.parametrize("n_features", [0, -1, 2.5, "3", True, 2**31 + 1])
def test_what_is_no_count_of_features_is_refused(n_features, read):
    with pytest.raises(InvalidParameter, match="n_features="):
        read(ROWS, n_features=n_features)


def test_a_table_of_another_kind_is_told_from_a_wrong_label(refused):
    assert "line 1: the label 'y,x' is not a number" in refused(b"y,x\n1,2\n")
    assert "a table whose first line names its columns must end in .csv" in refused(b"rent town\n1 2\n")
    assert ".csv" not in refused(b"1 1:2\nx 1:3\n")


def test_a_line_that_only_scikit_learn_refuses_is_named_all_the_same(refused):
    message = refused(b"1 1:2\n1 " + b"0" * 5_000 + b"1:2\n2 1:3\n")  # more digits than int() takes
    assert "line 2: scikit-learn refuses it" in message


def test_scikit_learn_lets_pass_what_is_refused_here(write):
    """Where this fails, scikit-learn has become stricter: good, and some of our checks may go."""
    for line in (b"1 1:nan\n", b"1 1:1_0\n", b"1 1:2\x0b2:3\n", b"1 qidx:3 1:2\n", b"1 1:2\r2:3\n"):
        load_svmlight_file(str(write(line)))
    load_svmlight_file(str(write(bz2.compress(ROWS) + b"BZh9junk", "rows.bz2")))


# The cache


def archives(cache):
    return sorted(cache.glob("*")) if cache.exists() else []


@pytest.fixture
def parses(monkeypatch):
    """Return the list of files that were parsed, not taken from the cache."""
    seen, original = [], libsvm._parse
    monkeypatch.setattr(libsvm, "_parse", lambda path, rules: (seen.append(path), original(path, rules))[1])
    return seen


def test_a_second_reading_is_from_the_cache_and_gives_the_same(write, parses, cache):
    path = write(ROWS)
    first, second = read_libsvm(path), read_libsvm(path)
    assert len(parses) == len(archives(cache)) == 1
    for X, y in (first, second):
        assert_rows((X, y))
        assert X.indices.dtype == X.indptr.dtype == np.int32
        assert type(X).__name__ == "csr_array"


def test_the_same_content_elsewhere_is_from_the_cache(write, parses):
    read_libsvm(write(ROWS, "a.svm"))
    assert_rows(read_libsvm(write(ROWS, "b.svm")))
    assert len(parses) == 1


def test_a_changed_file_is_parsed_anew(write, parses):
    path = write(ROWS)
    read_libsvm(path)
    times = path.stat().st_atime, path.stat().st_mtime
    path.write_bytes(ROWS.replace(b"1.5", b"2.5"))
    os.utime(path, times)
    assert read_libsvm(path)[1].tolist() == [2.5, -2.0]
    assert len(parses) == 2


@pytest.mark.parametrize(
    "options", [{"n_features": 5}, {"zero_based": True}, {"allow_nonfinite": True}, {"allow_incomplete": True}]
)
def test_each_option_has_a_file_of_its_own(options, write, parses, cache):
    path = write(ROWS)
    read_libsvm(path)
    read_libsvm(path, **options)
    read_libsvm(path, **options)
    assert len(parses) == len(archives(cache)) == 2


def test_without_the_cache_nothing_is_kept(read, cache):
    read(ROWS)
    assert archives(cache) == []


def test_a_refused_file_is_not_kept(write, cache):
    with pytest.raises(InvalidProblem):
        read_libsvm(write(b"1 1:nan\n"))
    assert archives(cache) == []


def test_a_file_written_to_while_it_is_read_is_not_kept(write, cache, monkeypatch):
    path, original = write(ROWS), libsvm._parse

    def parse(path, rules):
        found = original(path, rules)
        path.write_bytes(ROWS + b"3 1:1\n")
        return found

    monkeypatch.setattr(libsvm, "_parse", parse)
    assert_rows(read_libsvm(path))
    assert archives(cache) == []


@pytest.mark.parametrize(
    "harm",
    [
        lambda content: b"",
        lambda content: content[:-10],
        lambda content: content[:100] + bytes([content[100] ^ 1]) + content[101:],
        lambda content: b"junk",
    ],
)
def test_a_damaged_file_of_the_cache_is_made_again_in_silence(harm, write, parses, cache):
    path = write(ROWS)
    read_libsvm(path)
    (archive,) = archives(cache)
    archive.write_bytes(harm(archive.read_bytes()))
    for _ in range(2):
        assert_rows(read_libsvm(path))
    assert len(parses) == 2
    read_archive(archive)


def test_a_whole_archive_of_something_else_is_not_taken_for_the_data(write, parses, cache):
    path = write(ROWS)
    read_libsvm(path)
    (archive,) = archives(cache)
    arrays, meta = read_archive(archive)
    others = [
        ({}, {}),
        (arrays, {}),
        (arrays, {**meta, "key": "another"}),
        ({}, meta),
        (arrays, {**meta, "shape": 3}),
    ]
    for other in others:
        write_archive(archive, *other)
        assert_rows(read_libsvm(path))
    assert len(parses) == 1 + len(others)


def test_a_cache_that_cannot_be_written_is_no_error(write, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("STOIC_CACHE_DIR", str(tmp_path / "file" / "cache"))
    for _ in range(2):
        assert_rows(read_libsvm(write(ROWS)))


def test_a_full_disk_is_no_error(write, cache, monkeypatch):
    def no_space(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    assert_rows(read_libsvm(write(ROWS)))
    assert archives(cache) == []


def test_no_home_is_no_error(write, monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    for name in ("STOIC_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(kept.Path, "home", staticmethod(nowhere))
    assert_rows(read_libsvm(write(ROWS)))


def test_the_files_used_last_stay_and_older_ones_go(write, parses, cache):
    contents = [b"%d 1:1\n" % i for i in range(9)]
    for i, content in enumerate(contents[:8]):
        read_libsvm(write(content))
        (newest,) = set(archives(cache)) - {path for path in archives(cache) if path.stat().st_mtime < 1e9}
        os.utime(newest, (i, i))
    read_libsvm(write(contents[0]))  # used again: the oldest is now the second
    read_libsvm(write(contents[8]))
    assert len(archives(cache)) == 8
    parses.clear()
    read_libsvm(write(contents[0]))
    assert parses == []
    read_libsvm(write(contents[1]))
    assert len(parses) == 1


def test_what_a_killed_process_left_is_removed_after_a_day(write, cache):
    cache.mkdir(parents=True)
    for name, age in (("old", 90_000.0), ("new", 10.0)):
        path = cache / f".stoic-{name}.tmp"
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age, time.time() - age))
    read_libsvm(write(ROWS))
    assert [path.name for path in cache.glob(".stoic-*")] == [".stoic-new.tmp"]


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are those of POSIX")
def test_only_the_owner_can_read_the_cache(write, cache):
    read_libsvm(write(ROWS))
    assert cache.stat().st_mode & 0o077 == 0
