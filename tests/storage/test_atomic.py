"""A file that is written is whole at any moment, and a failure leaves the old one."""

import os

import pytest

from stoic.storage.atomic import replace_file


def test_text_is_written_as_utf_8_with_its_line_ends(tmp_path):
    replace_file(tmp_path / "a.txt", "λ\r\n\n")
    assert (tmp_path / "a.txt").read_bytes() == "λ\r\n\n".encode()


def test_bytes_replace_an_old_file(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    replace_file(path, b"\x00new")
    assert path.read_bytes() == b"\x00new"


@pytest.mark.parametrize("moment", ["os.fsync", "os.replace"])
@pytest.mark.parametrize("what", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(moment, what, tmp_path, monkeypatch):
    def stop(*args):
        raise what

    path = tmp_path / "a.txt"
    replace_file(path, "old")
    monkeypatch.setattr(moment, stop)
    with pytest.raises((KeyboardInterrupt, OSError)):
        replace_file(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")  # noqa: PTH110
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    replace_file(path, "old")
    opened = type(path).open
    monkeypatch.setattr(type(path), "open", lambda self, mode: opened(type(path)("/dev/full"), "wb"))
    with pytest.raises(OSError, match="No space left"):
        replace_file(path, "new" * 10_000)
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
def test_a_file_keeps_its_mode(tmp_path):
    path = tmp_path / "a.txt"
    replace_file(path, "old")
    path.chmod(0o640)
    replace_file(path, "new")
    assert path.stat().st_mode & 0o777 == 0o640
