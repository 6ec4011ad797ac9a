"""Thousands of damaged LIBSVM files: each is read as a simple parser reads it, or refused with file and line.

`STOIC_FUZZ_FILES` says how many; file number i is the same in every run.
"""

import bz2
import gzip
import math
import os
import random
import zlib

import pytest

from stoic.datasets.libsvm import read_libsvm
from stoic.errors import InvalidProblem

N_FILES = int(os.environ.get("STOIC_FUZZ_FILES", "5000"))
N_PARTS = 10

BASES = (
    b"1 1:0.5 3:-2\n-1 2:1e-3 7:4 12:0.25\n1\n-1 1:1 2:2 3:3 # a comment\n",
    b"-3.65 10:0.0123 205:1.5e-05 150360:0.7\r\n-4.1 3:1\r\n\r\n-2.9 10:.5 11:5. 12:+1\r\n",
    b"# header\n\n+1 1:1 2:1 3:1 4:1 5:1\n  2\t1:0\t9:9  \n3.5 100:1",
    "0 1:7 # naïve — 日本\n0.0 2:-7\n-0 3:1E2\n1e0 4:1e+2\n".encode(),
    b"".join(b"%d %d:%d %d:%d\n" % (i, i + 1, i * i, i + 20, -i) for i in range(12)),
    b"5 0:1 1:2\n6 0:3 2:4\n",  # from 0
)
NASTY = (
    *(b"nan", b"inf", b"-Infinity", b"1e999", b"1_0", b"0x1p3", b"1:2:3", b":", b"12:", b":5", b"0:1", b"-1:1"),
    *(
        b"2147483647:1",
        b"2147483648:1",
        b"99999999999999999999:1",
        b"qid:3",
        b"1,2",
        b"#",
        b"\xff",
        b"\x00",
        b"\r",
    ),
    *(b"\x0b", b"\x0c", b"\n", b"\r\n", b"\n\n", b" ", b"\t", b"\xc2\xa0", b"+", b"-", b".", b"e", b"1e", b"--1"),
    *(b"1:1 1:1", b"3:1 2:1", b"# \xff\n", b"\xef\xbb\xbf", b"1:+-2", b"+7:1", b"-0:1", b"007:1", b"8:1e-999"),
)


# The simple parser. It raises FaultError(line), or FaultError(None) for the whole file.


class FaultError(Exception):
    pass


def unpack(content, suffix):
    try:
        if suffix == ".gz":
            return gzip.decompress(content)
        if suffix == ".bz2":
            return bunzip2(content)
    except (EOFError, OSError, ValueError, zlib.error):
        raise FaultError(None) from None
    return content


def bunzip2(content):
    parts = []
    while content or not parts:
        decoder = bz2.BZ2Decompressor()
        parts.append(decoder.decompress(content))
        if not decoder.eof:
            raise EOFError
        content = decoder.unused_data
    return b"".join(parts)


def parse(content, n_features, zero_based):
    """Return rows (label, {column: value})."""
    rows = []
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            row = parse_line(line, n_features, zero_based)
        except ValueError:
            raise FaultError(number) from None
        if row is not None:
            rows.append(row)
    if not rows or (n_features is None and not any(pairs for _, pairs in rows)):
        raise FaultError(None)
    return rows


def parse_line(line, n_features, zero_based):
    data, _, comment = line.removesuffix(b"\r").partition(b"#")
    comment.decode("utf-8")
    words = [word for word in data.decode("latin-1").replace("\t", " ").split(" ") if word]
    if not words:
        return None
    label, pairs = as_number(words[0]), {}
    for word in words[1:]:
        left, right = word.split(":")
        index = as_index(left, n_features, zero_based)
        if pairs and index <= max(pairs):
            raise ValueError(word)
        pairs[index] = as_number(right)
    return label, pairs


def as_number(word):
    if set(word) - set("0123456789+-.eE") or not math.isfinite(float(word)):
        raise ValueError(word)
    return float(word)


def as_index(word, n_features, zero_based):
    if set(word) - set("0123456789+-"):
        raise ValueError(word)
    index, first = int(word), 0 if zero_based else 1
    last = 2**31 - 1 if n_features is None else n_features - 1 + first
    if not first <= index <= last:
        raise ValueError(word)
    return index - first


# Damage


def flip(content, rng):
    altered = bytearray(content)
    altered[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(altered)


def overwrite(content, rng):
    at = rng.randrange(len(content))
    return content[:at] + rng.randbytes(1) + content[at + 1 :]


def delete(content, rng):
    at = rng.randrange(len(content))
    return content[:at] + content[at + rng.randint(1, 6) :]


def insert(content, rng):
    at = rng.randint(0, len(content))
    return content[:at] + rng.choice([rng.choice(NASTY), rng.randbytes(rng.randint(1, 3))]) + content[at:]


def add_word(content, rng):
    spaces = [i for i, sign in enumerate(content) if sign in b" \n"] or [0]
    at = rng.choice(spaces)
    return content[:at] + b" " + rng.choice(NASTY) + content[at:]


def cut(content, rng):
    return content[: rng.randrange(len(content))]


def swap_words(content, rng):
    words = content.split(b" ")
    i, j = (rng.randrange(len(words)) for _ in range(2))
    words[i], words[j] = words[j], words[i]
    return b" ".join(words)


def swap_lines(content, rng):
    lines = content.split(b"\n")
    i, j = (rng.randrange(len(lines)) for _ in range(2))
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


def repeat(content, rng):
    start = rng.randrange(len(content))
    part = content[start : start + rng.randint(1, 20)]
    return content[:start] + part + content[start:]


DAMAGE = (flip, overwrite, delete, insert, add_word, cut, swap_words, swap_lines, repeat)
PACKERS = {"": bytes, ".gz": lambda content: gzip.compress(content, mtime=0), ".bz2": bz2.compress}


def damaged(content, rng):
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        content = rng.choice(DAMAGE)(content, rng) if content else content
    return content


def make(rng):
    """Return the content and the name's end of a file, and options to read it with."""
    suffix = rng.choice(["", "", ".gz", ".bz2"])
    content = damaged(rng.choice(BASES), rng)
    content = PACKERS[suffix](content)
    if suffix and rng.random() < 0.5:  # the compressed data themselves, or two parts one after the other
        content = (
            damaged(content, rng) if rng.random() < 0.8 else content + damaged(PACKERS[suffix](BASES[0]), rng)
        )
    options = {"n_features": rng.choice([None, None, 12, 150_360]), "zero_based": rng.random() < 0.2}
    return content, suffix, options


def expected(content, suffix, options):
    try:
        return parse(unpack(content, suffix), **options), None
    except FaultError as fault:
        return None, fault


def assert_same(found, rows, n_features):
    X, y = found
    assert X.shape == (len(rows), n_features or 1 + max(max(pairs, default=0) for _, pairs in rows))
    assert y.tolist() == [label for label, _ in rows]
    indices, data = X.indices.tolist(), X.data.tolist()
    for start, end, (_, pairs) in zip(X.indptr[:-1], X.indptr[1:], rows, strict=True):
        assert indices[start:end] == list(pairs)
        assert data[start:end] == list(pairs.values())


def outcome(path, options):
    """Return what was read and None, or None and the message of the refusal; nothing else may be raised."""
    try:
        return read_libsvm(path, cache=False, **options), None
    except InvalidProblem as error:
        return None, str(error)


def check(path, content, suffix, options):
    """Return whether a file is read; assert that it is read or refused rightly."""
    rows, fault = expected(content, suffix, options)
    found, message = outcome(path, options)
    if found is not None:
        assert fault is None, f"has a fault in line {fault}, but is read"
        assert_same(found, rows, options["n_features"])
        return True
    assert fault is not None, f"has no fault, but is refused: {message}"
    (line,) = fault.args
    place = f"{path}" if line is None else f"{path}, line {line}: "  # where a stream is damaged, lines may be, too
    assert message.startswith(place), f"has its fault in line {line}, but is refused so: {message}"
    return False


@pytest.mark.parametrize("part", range(N_PARTS))
def test_a_damaged_file_is_read_as_it_stands_or_refused(part, tmp_path):
    outcomes = []
    for number in range(part, N_FILES, N_PARTS):
        content, suffix, options = make(random.Random(number))
        path = tmp_path / f"rows{suffix}"
        path.write_bytes(content)
        try:
            outcomes.append(check(path, content, suffix, options))
        except AssertionError as error:
            pytest.fail(f"file {number}{suffix} with {options} {error}\n{content!r}")
    if len(outcomes) >= 100:
        assert 0.1 < sum(outcomes) / len(outcomes) < 0.8
