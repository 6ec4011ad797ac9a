"""Kernels compile once on a machine, and no state of the cache changes a result or stops one."""

import errno
import json
import logging
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from commands import PATIENCE
from stoic.engines.kernels import jit

X = np.arange(10.0)
ONCE = "stoic is compiling kernels for this kind of problem, once on this machine: 3 to 20 s of one processor"
NEVER = "stoic is compiling kernels, 3 to 20 s of one processor in every process"


def dot(x, y):
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


def scale(factor, x):
    return factor * x[0]


def ratio(a, b):
    return a / b


def apply(function, x):
    return function(x, x)


def first(pair):
    return pair.first


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return an empty cache folder, in a process that has not said anything yet."""
    monkeypatch.setenv("STOIC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(jit, "_said", set())
    return tmp_path / "cache"


@pytest.fixture
def said(caplog):
    """Return a function that gives the lines logged so far."""
    caplog.set_level(logging.INFO, logger="stoic")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "stoic"]


def compiled(function, *arguments, decorator=jit.kernel):
    """Call a kernel as a process that has not called it before; return the result and whether it was loaded."""
    fresh = decorator(function)
    result = fresh(*arguments)
    return result, sum(fresh.stats.cache_hits.values()) > 0


def kept(cache):
    return sorted(path for path in cache.rglob("*") if path.is_file())


# What is kept


def test_a_kernel_is_compiled_once_and_then_loaded(cache):
    assert compiled(dot, X, X) == (285.0, False)
    assert compiled(dot, X, X) == (285.0, True)
    assert len(kept(cache)) == 1


def test_each_signature_has_a_file_of_its_own(cache):
    compiled(dot, X, X)
    assert compiled(dot, X.astype(np.float32), X) == (285.0, False)
    frozen = X.copy()
    frozen.flags.writeable = False
    assert compiled(dot, frozen, X) == (285.0, False)
    assert len(kept(cache)) == 3


def test_a_switch_of_numba_that_alters_the_code_has_a_file_of_its_own(cache, monkeypatch):
    compiled(dot, X, X)
    monkeypatch.setattr(jit.numba.core.config, "BOUNDSCHECK", 1)
    assert compiled(dot, X, X) == (285.0, False)


def test_each_decorator_has_a_file_of_its_own(cache):
    compiled(dot, X, X)
    assert compiled(dot, X, X, decorator=jit.allocating_kernel) == (285.0, False)
    assert len(kept(cache)) == 2


def test_named_tuples_whose_fields_are_swapped_are_told_apart(cache):
    def pair(*fields):
        return NamedTuple("Pair", [(name, float) for name in fields])

    forward, backward = pair("first", "second"), pair("second", "first")
    assert compiled(first, forward(1.0, 2.0)) == (1.0, False)
    assert compiled(first, backward(1.0, 2.0)) == (2.0, False)


def test_tuples_of_arrays_are_described_to_the_last_element():
    kind = jit.numba.typeof((X, (1, 2.0), (3, 4)))
    assert jit._describe(kind) == "(array(float64, 1d, C), (int64, float64), (int64, int64))"


def test_recompiling_on_demand_replaces_what_was_kept(cache):
    fresh = jit.kernel(dot)
    fresh(X, X)
    fresh.recompile()
    assert sum(fresh.stats.cache_misses.values()) == 2
    assert fresh(X, X) == 285.0
    assert len(kept(cache)) == 1


def test_division_by_zero_follows_ieee_754(cache):
    assert compiled(ratio, 1.0, 0.0)[0] == np.inf
    assert np.isnan(compiled(ratio, 0.0, 0.0)[0])


def test_without_compilation_a_kernel_is_the_function_itself(monkeypatch):
    monkeypatch.setattr(jit.numba.core.config, "DISABLE_JIT", 1)
    assert jit.kernel(dot) is dot


# What is not kept, and works all the same


def test_a_function_as_argument_is_compiled_in_every_process(cache, said):
    inner = jit.kernel(dot)
    assert compiled(apply, inner, X) == (285.0, False)
    assert compiled(apply, inner, X) == (285.0, False)
    assert [path.name.split("-")[0] for path in kept(cache)] == ["dot"]
    assert any(NEVER in line for line in said())


def scaling_by(factor):
    def scaled(x):
        return factor * x[0]

    return scaled


def test_a_closure_is_compiled_in_every_process(cache):
    for factor in (2.0, 3.0):
        assert compiled(scaling_by(factor), np.ones(1)) == (factor, False)
    assert kept(cache) == []


def test_a_function_without_a_file_is_compiled_in_every_process(cache):
    names = {}
    exec("def typed_in(x):\n    return x[0]", names)  # noqa: S102 - as a prompt does
    assert compiled(names["typed_in"], X) == (0.0, False)
    assert kept(cache) == []


def test_kernels_edited_after_their_import_leave_the_cache_alone(cache, said, monkeypatch):
    compiled(dot, X, X)
    monkeypatch.setattr(jit, "_AT_IMPORT", "another")
    assert compiled(dot, X, X) == (285.0, False)
    assert jit.kernel(dot).stats.cache_path is None
    assert "edited" in said()[-1]


# No folder


def below_a_file(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    return tmp_path / "file" / "cache"


def a_file(tmp_path):
    tmp_path.joinpath("cache").mkdir()
    tmp_path.joinpath("cache", jit.cache_folder().name).write_text("not a folder")
    return tmp_path / "cache"


def in_proc(tmp_path):
    return Path("/proc/stoic") if sys.platform == "linux" else below_a_file(tmp_path)


@pytest.mark.parametrize("place", [below_a_file, a_file, in_proc])
def test_where_no_folder_can_be_made_kernels_work_and_one_line_says_so(place, cache, said, tmp_path, monkeypatch):
    monkeypatch.setenv("STOIC_CACHE_DIR", str(place(tmp_path)))
    for _ in range(2):
        assert compiled(dot, X, X) == (285.0, False)
        assert compiled(scale, 2.0, X) == (0.0, False)
    assert len(said()) == 1
    assert NEVER in said()[0]
    assert "STOIC_CACHE_DIR" in said()[0]


def test_without_a_home_kernels_work_and_one_line_says_so(cache, said, monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    for name in ("STOIC_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(jit.Path, "home", staticmethod(nowhere))
    assert compiled(dot, X, X) == (285.0, False)
    assert said() == [f"{NEVER}: Could not determine home directory."]


def test_a_folder_that_can_be_read_but_not_written_is_read(cache, said, monkeypatch):
    compiled(dot, X, X)

    def refuse(*arguments, **options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(jit, "replace_file", refuse)
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert compiled(dot, X, X) == (285.0, True)
    assert compiled(scale, 2.0, X) == (0.0, False)
    assert said()[-1].startswith(f"{NEVER}: Permission denied")


@pytest.mark.skipif(sys.platform == "win32", reason="a limit on file sizes stands in for a full disk")
@pytest.mark.parametrize("room", [0, 8192])
def test_on_a_full_disk_kernels_work_and_nothing_is_left_behind(room, cache, said):
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        assert compiled(dot, X, X) == (285.0, False)
        assert compiled(dot, X, X) == (285.0, False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert kept(cache) == []
    assert sum(NEVER in line for line in said()) == 1


# Damage


def flipped(place):
    def flip(content):
        at = int(place * (len(content) - 1))
        return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]

    return flip


def cut(place):
    return lambda content: content[: int(place * len(content))]


def noise(seed):
    return lambda content: random.Random(seed).randbytes(len(content))


PLACES = (0.0, 0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
DAMAGE = (
    {f"flipped at {place}": flipped(place) for place in PLACES}
    | {f"cut at {place}": cut(place) for place in PLACES[:-1]}
    | {f"noise {seed}": noise(seed) for seed in range(2)}
    | {"longer": lambda content: content + b"\0", "zeros": lambda content: bytes(len(content))}
)


@pytest.mark.parametrize("harm", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_replaced(harm, cache):
    compiled(dot, X, X)
    (path,) = kept(cache)
    path.write_bytes(harm(path.read_bytes()))
    assert compiled(dot, X, X) == (285.0, False)
    assert kept(cache) == [path]
    assert compiled(dot, X, X) == (285.0, True)


def test_a_file_under_the_name_of_another_is_replaced(cache):
    compiled(dot, X, X)
    (right,) = kept(cache)
    compiled(dot, X, X.astype(np.float32))
    (wrong,) = set(kept(cache)) - {right}
    shutil.copy(wrong, right)
    assert compiled(dot, X, X) == (285.0, False)


def test_a_whole_file_that_cannot_be_used_is_replaced(cache):
    compiled(dot, X, X)
    (path,) = kept(cache)
    jit._write(path, b"cno_such_module\nname\n.")
    assert compiled(dot, X, X) == (285.0, False)
    assert compiled(dot, X, X) == (285.0, True)


def test_a_folder_under_the_name_of_a_file_does_no_harm(cache):
    compiled(dot, X, X)
    (path,) = kept(cache)
    path.unlink()
    path.mkdir()
    assert compiled(dot, X, X) == (285.0, False)


# Folders


@pytest.fixture
def sources(tmp_path):
    (tmp_path / "deeper").mkdir()
    (tmp_path / "a.py").write_text("A = 1")
    (tmp_path / "deeper" / "b.py").write_text("B = 1")
    return tmp_path


@pytest.mark.parametrize("name", ["a.py", "deeper/b.py", "new.py"])
def test_an_edited_or_added_file_changes_the_fingerprint(name, sources):
    before = jit.fingerprint(sources)
    assert jit.fingerprint(sources) == before
    (sources / name).write_text("A = 2")
    assert jit.fingerprint(sources) != before


def test_a_renamed_file_changes_the_fingerprint(sources):
    before = jit.fingerprint(sources)
    (sources / "a.py").rename(sources / "c.py")
    assert jit.fingerprint(sources) != before


def test_another_compiler_or_processor_changes_the_fingerprint(sources, monkeypatch):
    names = [jit.fingerprint(sources)]
    monkeypatch.setattr(jit.numba, "__version__", "0.0")
    names.append(jit.fingerprint(sources))
    monkeypatch.setattr(jit.llvmlite, "__version__", "0.0")
    names.append(jit.fingerprint(sources))
    monkeypatch.setattr(jit.numba.core.config, "CPU_NAME", "generic")
    names.append(jit.fingerprint(sources))
    monkeypatch.setattr(sys, "version", "4.0")
    names.append(jit.fingerprint(sources))
    assert len(set(names)) == 5


def test_a_package_without_source_files_has_no_fingerprint(tmp_path):
    with pytest.raises(OSError, match="no source files"):
        jit.fingerprint(tmp_path)


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "given/stoic"),
        ("linux", None, "home/.cache/stoic"),
        ("darwin", None, "home/Library/Caches/stoic"),
        ("win32", "LOCALAPPDATA", "given/stoic"),
        ("win32", None, "home/AppData/Local/stoic"),
    ],
)
def test_the_cache_is_where_the_system_keeps_caches(platform, variable, expected, tmp_path, monkeypatch):
    for name in ("STOIC_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "given"))
    monkeypatch.setattr(jit.Path, "home", staticmethod(lambda: tmp_path / "home"))
    monkeypatch.setattr(sys, "platform", platform)
    assert jit.cache_folder().parent == tmp_path / expected


def test_a_relative_xdg_folder_is_ignored(tmp_path, monkeypatch):
    monkeypatch.delenv("STOIC_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setattr(jit.Path, "home", staticmethod(lambda: tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert jit.cache_folder().parent == tmp_path / ".cache" / "stoic"


def test_old_folders_are_removed_but_for_the_newest_and_those_in_use(cache):
    ages = {"0" * 16: 5.0, "1" * 16: 4.0, "2" * 16: 3.0, "3" * 16: 2.0, "4" * 16: 0.5}
    for name, days in ages.items():
        folder = cache / f"kernels-{name}"
        folder.mkdir(parents=True)
        then = time.time() - days * 86_400
        os.utime(folder, (then, then))
    (cache / "kernels-of-someone-else").mkdir()
    compiled(dot, X, X)
    left = {path.name for path in cache.iterdir()} - {jit.cache_folder().name}
    assert left == {f"kernels-{'3' * 16}", f"kernels-{'4' * 16}", "kernels-of-someone-else"}


def test_folders_in_use_are_left_even_if_there_are_many(cache):
    for digit in range(6):
        (cache / f"kernels-{str(digit) * 16}").mkdir(parents=True)
    compiled(dot, X, X)
    assert len(list(cache.iterdir())) == 7


def test_only_the_owner_can_read_the_folder(cache):
    compiled(dot, X, X)
    if os.name == "posix":
        assert jit.cache_folder().stat().st_mode & 0o077 == 0


# Lines in the log


def test_compiling_is_said_once_and_loading_is_silent(cache, said, monkeypatch):
    compiled(dot, X, X)
    compiled(scale, 2.0, X)
    assert said() == [ONCE]
    monkeypatch.setattr(jit, "_said", set())
    assert compiled(dot, X, X) == (285.0, True)
    assert said() == [ONCE]


# Processes

CALLEE = """
from mini.jit import kernel

@kernel
def times(x):
    return {factor} * x
"""
CALLER = """
from mini.callee import times
from mini.jit import kernel

@kernel
def squared_times(x):
    return times(times(x))
"""
SCRIPT = """
import json, sys
from mini.caller import squared_times
result = [squared_times(eval(argument)) for argument in sys.argv[1:]]
print(json.dumps([result, sum(squared_times.stats.cache_hits.values())]))
"""


@pytest.fixture
def package(tmp_path):
    """Return the folder of a package with this decorator and two kernels, free to be edited."""
    folder = tmp_path / "mini"
    folder.mkdir()
    shutil.copy(jit.__file__, folder / "jit.py")
    (folder / "__init__.py").write_text("")
    (folder / "callee.py").write_text(CALLEE.format(factor=2))
    (folder / "caller.py").write_text(CALLER)
    return folder


QUIETLY = """
import logging
logging.getLogger("stoic").setLevel(logging.ERROR)
"""


def start(package, *arguments, script=SCRIPT):
    """Start an interpreter that calls the kernel `squared_times` on each argument; logging is as Python has it."""
    environment = os.environ | {
        "PYTHONPATH": str(package.parent),
        "STOIC_CACHE_DIR": str(package.parent / "cache"),
    }
    command = [sys.executable, "-W", "error", "-c", script, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)  # noqa: S603 - our own


def finish(process):
    """Return the results, how many came from the cache, and the lines on standard error."""
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    return *json.loads(out), err.splitlines()


@pytest.mark.slow
def test_a_second_process_loads_and_an_edited_callee_is_compiled_anew(package):
    assert finish(start(package, "1.0")) == ([4.0], 0, [ONCE])
    assert finish(start(package, "1.0")) == ([4.0], 1, [])
    (package / "callee.py").write_text(CALLEE.format(factor=3))
    assert finish(start(package, "1.0")) == ([9.0], 0, [ONCE])


@pytest.mark.slow
def test_a_process_that_cannot_keep_what_it_compiles_says_why_on_standard_error(package):
    (package.parent / "cache").write_text("not a folder")
    results, hits, lines = finish(start(package, "1.0"))
    assert (results, hits, len(lines)) == ([4.0], 0, 1)
    assert lines[0].startswith(NEVER)


@pytest.mark.slow
def test_a_process_compiles_in_silence_if_told_to(package):
    assert finish(start(package, "1.0", script=QUIETLY + SCRIPT)) == ([4.0], 0, [])


@pytest.mark.slow
def test_a_flipped_bit_of_object_code_does_not_reach_a_second_process(package):
    finish(start(package, "1.0"))
    (path,) = [path for path in kept(package.parent / "cache") if path.name.startswith("squared_times")]
    path.write_bytes(flipped(0.3)(path.read_bytes()))
    assert finish(start(package, "1.0"))[:2] == ([4.0], 0)
    assert finish(start(package, "1.0"))[:2] == ([4.0], 1)


@pytest.mark.slow
def test_processes_at_once_keep_all_they_compile(package):
    together = [start(package, *arguments) for arguments in (("1.0", "1"), ("1", "1.0"))]
    for process in together:
        assert finish(process)[0] == [4, 4]
    assert finish(start(package, "1", "1.0")) == ([4, 4.0], 2, [])
    assert not [path for path in kept(package.parent / "cache") if path.name.startswith(".")]


@pytest.mark.skipif(os.name != "posix", reason="owners and modes are those of POSIX")
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_code_from_a_folder_that_others_can_write_to_is_not_run(mode, cache, said):
    assert compiled(dot, X, X) == (285.0, False)
    folder = jit.cache_folder()
    folder.chmod(mode)
    before = [path.read_bytes() for path in kept(cache)]
    assert compiled(dot, X, X) == (285.0, False)
    assert "others can write to" in said()[-1]
    assert [path.read_bytes() for path in kept(cache)] == before
    folder.chmod(0o700)
    assert compiled(dot, X, X) == (285.0, True)


@pytest.mark.skipif(os.name != "posix", reason="owners and modes are those of POSIX")
def test_code_from_the_folder_of_another_user_is_not_run(cache, said, monkeypatch):
    assert compiled(dot, X, X) == (285.0, False)
    owner = jit.cache_folder().stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    monkeypatch.setattr(jit, "_OWNERS", set())
    assert compiled(dot, X, X) == (285.0, False)
    assert "belongs to another user; STOIC_CACHE_DIR" in said()[-1]
