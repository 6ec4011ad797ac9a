"""What cannot be written is refused before the work, and nothing but a regular file is ever replaced."""

import os
import stat

import pytest

from stoic.errors import InvalidParameter
from stoic.storage.archive import write_archive
from stoic.storage.atomic import replace_file
from stoic.storage.outputs import check_output, check_output_folder, check_outputs

POSIX = pytest.mark.skipif(os.name != "posix", reason="pipes, devices and links are those of POSIX")


def refusal(path):
    with pytest.raises(InvalidParameter) as refused:
        check_output(path)
    return str(refused.value)


def test_a_new_file_an_old_one_and_a_link_to_either_may_be_written(tmp_path):
    old, link = tmp_path / "old", tmp_path / "link"
    old.write_text("old")
    link.symlink_to(tmp_path / "new")
    for path in (old, tmp_path / "other", link):
        check_output(path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "old"]
    assert old.read_text() == "old"


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    said = refusal(tmp_path / "no" / "model.stoic")
    assert f"the folder {str(tmp_path / 'no')!r} does not exist; make it" in said


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    assert "file" in refusal(tmp_path / "file" / "model.stoic")


def test_a_folder_is_no_file(tmp_path):
    assert "is a folder" in refusal(tmp_path)


@POSIX
@pytest.mark.parametrize("kind", ["pipe", "device", "link to a device", "links in a circle", "long name"])
def test_what_is_no_regular_file_is_refused_and_stays(kind, tmp_path):
    path = tmp_path / "out"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = tmp_path.__class__(os.devnull)
    elif kind == "link to a device":
        path.symlink_to(os.devnull)
    elif kind == "links in a circle":
        path.symlink_to(path)
    else:
        path = tmp_path / ("x" * 300)
    assert "cannot be written" in refusal(path)
    before = sorted(os.listdir(tmp_path))  # noqa: PTH208
    with pytest.raises(OSError, match=r"\S"):
        replace_file(path, "content")
    assert sorted(os.listdir(tmp_path)) == before  # noqa: PTH208
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)  # noqa: PTH116


@POSIX
def test_a_file_is_written_where_a_link_leads(tmp_path):
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    replace_file(link, "content")
    assert link.is_symlink()
    assert target.read_text() == "content"


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", refuse)
    assert "Permission denied" in refusal(tmp_path / "model.stoic")
    with pytest.raises(InvalidParameter, match="Permission denied; give another"):
        check_output_folder(tmp_path)


def test_a_folder_for_results_is_made(tmp_path):
    check_output_folder(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_a_file_is_no_folder_for_results(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidParameter, match="give another"):
        check_output_folder(tmp_path / "file")


def test_two_outputs_are_two_files_and_no_input(tmp_path):
    data, link = tmp_path / "rows.csv", tmp_path / "link"
    data.write_text("a")
    link.symlink_to(data)
    check_outputs({"--out": tmp_path / "a", "--summary": tmp_path / "b"}, {"DATA": data, "--groups-file": None})
    with pytest.raises(InvalidParameter, match="--summary and --out are the same file"):
        check_outputs({"--out": tmp_path / "a", "--summary": tmp_path / "." / "a"}, {})
    with pytest.raises(InvalidParameter, match="--out and DATA are the same file"):
        check_outputs({"--out": link}, {"DATA": data})


@pytest.mark.parametrize("moment", ["write", "os.fsync"])
def test_a_full_disk_is_an_error_that_names_the_file(moment, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    path = tmp_path / "model.npz"
    if moment == "write":
        monkeypatch.setattr("zipfile.ZipFile.writestr", full)
    else:
        monkeypatch.setattr(moment, full)
    with pytest.raises(OSError, match="No space left") as refused:
        write_archive(path, {"w": [1.0]}, {})
    assert refused.value.filename == str(path)
    assert list(tmp_path.iterdir()) == []
