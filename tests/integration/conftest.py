"""A study that a command has run to its end; the module has the COMMAND, and its settings as CONFIG."""

import pytest

from commands import run


@pytest.fixture(scope="module")
def config(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "small.toml"
    path.write_text(request.module.CONFIG, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def undisturbed(request, config, tmp_path_factory):
    """The folder of the study, and the command that has ended."""
    folder = tmp_path_factory.mktemp("undisturbed") / "out"
    ended = run(request.module.COMMAND, "--config", config, "--out", folder, "--jobs", 1)
    assert ended.returncode == 0, ended.stderr
    return folder, ended
