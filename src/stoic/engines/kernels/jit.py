"""The decorator of all kernels: compiled once on a machine, kept in a cache that cannot do harm.

numba's own cache makes the import fail where it cannot write, serves an old result when a callee in another file
was edited, lets two processes file the code of one signature under another, and runs object code unchecked: one
flipped bit may raise anything, kill the process, or return another number. So numba compiles, but the cache is our
own. One file keeps one kernel for one signature; its name is a hash of all that the code depends on; it begins
with a SHA-256 of the rest; and it appears under its name only when it is complete.
"""

import contextlib
import hashlib
import logging
import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite
import llvmlite.binding
import numba

from stoic import brackets, codes
from stoic.storage.atomic import replace_file
from stoic.storage.cache_dir import keep_newest, user_cache

Function = TypeVar("Function", bound=Callable[..., Any])

_numba: Any = numba  # typed in part, and differently from version to version
_config, _types = _numba.core.config, _numba.types
_log = logging.getLogger("stoic")
_said: set[str] = set()

_COMPILING = (
    "stoic is compiling kernels for this kind of problem, once on this machine: 3 to 20 s of one processor"
)
_N_FOLDERS = 3  # the newest are kept, ours among them,
_IDLE = 86_400.0  # and those used within a day: a cluster of many processor types may share one home
_OWNERS = {0}  # beside the user: root, whose folder may come with an image
_SEAL = hashlib.sha256().digest_size


class _NotKeptError(OSError):
    """A compiled kernel that no cache may keep, and why."""


def kernel(function: Function) -> Function:
    """Compile a function of arrays and scalars on its first call, or load it from the cache.

    Division by zero follows IEEE 754, the GIL is released, and floating point is strict; see `fused` and
    `reordered` for what is not. References to arrays are not counted: with tuples of arrays handed from kernel to
    kernel, counting took most of the time of a short row. So a kernel makes no arrays, but is given those that it
    needs; see `allocating_kernel`.

    Parameters
    ----------
    function : callable
        A module-level function that numba understands. The cache knows all files of this package; of a kernel
        elsewhere it knows only the file it stands in, and serves an old result when a callee in another is edited.

    Returns
    -------
    callable
        numba's dispatcher, called as `function` is. `NUMBA_DISABLE_JIT=1` gives the function itself.

    Notes
    -----
    The cache is `$STOIC_CACHE_DIR`, else `stoic` in the user's cache folder. Where none can be written, each
    process compiles for itself. So it is with arguments other than arrays, numbers, and tuples (plain or named) of
    them, whose types do not tell all that the code depends on.

    A process that compiles says so before it does, in one line of the log "stoic", and why if it cannot keep the
    code. The level is WARNING: Python shows that on standard error unless told otherwise, and without the line
    the first solve seems to hang. ``logging.getLogger("stoic").setLevel(logging.ERROR)`` silences it.
    """
    return _cached(function, _nrt=False)


def inlined(function: Function) -> Function:
    """Compile a function into each kernel that calls it: a call with many arrays costs as much as a short row."""
    return _cached(function, _nrt=False, forceinline=True)


def fused(function: Function) -> Function:
    """Compile a function in which a product and a sum may be one instruction, rounded once."""
    return _cached(function, _nrt=False, fastmath={"contract"})


def reordered(function: Function) -> Function:
    """Compile a function as `fused` does, in which the terms of a sum may be added in any order, too."""
    return _cached(function, _nrt=False, fastmath={"contract", "reassoc"})


def allocating_kernel(function: Function) -> Function:
    """Compile a function that makes arrays of its own; references to arrays are counted, at each call."""
    return _cached(function)


def _cached(function: Function, **options: bool | set[str]) -> Function:
    dispatcher = _numba.njit(nogil=True, no_cfunc_wrapper=True, error_model="numpy", **options)(function)
    if not _config.DISABLE_JIT:
        settings = {name: sorted(value) if isinstance(value, set) else value for name, value in options.items()}
        dispatcher._cache = _Cache(function, settings)  # noqa: SLF001 - what enable_caching() does, with our cache
    return cast("Function", dispatcher)


def cache_folder() -> Path:
    """Return the folder of this version's compiled kernels; raise OSError where there can be none."""
    now = fingerprint(Path(__file__).parent)
    if now != _AT_IMPORT:
        raise _NotKeptError("the source of the kernels was edited after this process imported it")
    folder = user_cache() / f"kernels-{now}"
    _check_owner(folder)
    return folder


def _check_owner(folder: Path) -> None:
    """Refuse a folder that is another user's, or that others can write to: code from it would run as ours."""
    if os.name != "posix":
        return
    try:
        found = folder.stat()
    except FileNotFoundError:
        return
    if found.st_uid not in {*_OWNERS, os.geteuid()}:
        raise _NotKeptError(f"{folder} belongs to another user; STOIC_CACHE_DIR may name another folder")
    if found.st_mode & 0o022:
        raise _NotKeptError(f"others can write to {folder}; run chmod go-w on it, or remove it")


def fingerprint(folder: Path) -> str:
    """Return a name for what compiled code depends on: the sources, compiler and processor."""
    cpu = _config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    digest = hashlib.sha256(repr((numba.__version__, llvmlite.__version__, sys.version, cpu)).encode())
    sources = sorted(folder.rglob("*.py"))
    if not sources:  # a zipped or frozen package: its versions could not be told apart
        raise _NotKeptError(f"{folder} has no source files to tell one version from the next")
    for path in (Path(brackets.__file__), Path(codes.__file__), *sources):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        name = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name
        digest.update(f"{name} {content}\n".encode())
    return digest.hexdigest()[:16]


class _Cache:
    """What numba asks of a cache: `load_overload` before it compiles, `save_overload` after."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self._name = function.__qualname__.replace("<locals>.", "")
        self._closed = function.__closure__ is not None
        code = function.__code__
        try:  # now: the file may be edited before the kernel is called
            source = hashlib.sha256(Path(code.co_filename).read_bytes()).hexdigest()
        except OSError:  # typed at a prompt
            source = ""
        self._identity = (function.__module__, function.__qualname__, code.co_firstlineno, options, source)

    @property
    def cache_path(self) -> str | None:
        """The folder, or None where there is none."""
        try:
            return str(cache_folder())
        except OSError:
            return None

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the compiled kernel, or None to have it compiled."""
        context.refresh()
        try:
            path = self._path(signature, context.codegen())
            found = _load(path, context)
            if found is None:
                _prepare(path.parent)
                _say_once(
                    "stoic is compiling kernels for this kind of problem, once on this machine: 3 to 20 s of one processor"
                )
        except OSError as error:
            _say_not_kept(error)
            return None
        return found

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep what numba compiled, if it may and can be kept."""
        try:
            path = self._path(signature, compiled.codegen)
            if compiled.lifted or compiled.library.has_dynamic_globals:
                raise _NotKeptError(f"{self._name} holds object-mode code, or an address of this process")
            _write(path, _numba.core.serialize.dumps(compiled._reduce()))  # noqa: SLF001 - as numba does
        except OSError as error:
            _say_not_kept(error)

    def flush(self) -> None:
        """Forget this kernel, in all its signatures."""
        with contextlib.suppress(OSError):
            for path in cache_folder().glob(f"{self._name}-*"):
                path.unlink(missing_ok=True)

    def _path(self, signature: Any, codegen: Any) -> Path:
        """Return the file of one signature, named by all that its code depends on."""
        arguments, returned = _numba.core.sigutils.normalize_signature(signature)
        if self._closed or not self._identity[-1]:
            raise _NotKeptError(f"{self._name} is not a module-level function in a file")
        described = [*map(_describe, arguments), str(returned)]
        key = repr((self._identity, described, codegen.magic_tuple(), _settings())).encode()
        return cache_folder() / f"{self._name}-{hashlib.sha256(key).hexdigest()[:32]}"


def _describe(kind: Any) -> str:
    """Return all about a type that code may depend on; a named tuple's own name omits the order of its fields."""
    if isinstance(kind, _types.BaseNamedTuple):
        owner = kind.instance_class
        fields = [f"{name}: {_describe(field)}" for name, field in zip(kind.fields, kind, strict=True)]
        return f"{owner.__module__}.{owner.__qualname__}({', '.join(fields)})"
    if isinstance(kind, _types.BaseTuple):
        return f"({', '.join(map(_describe, kind))})"
    if isinstance(kind, _types.Array | _types.Number | _types.Boolean | _types.NoneType | _types.Omitted):
        return str(kind)
    raise _NotKeptError(f"{kind} is neither an array, nor a number, nor a tuple of them")


def _settings() -> tuple[str, ...]:
    """Return the switches of numba that alter the code it makes."""
    names = ("OPT", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT", "USING_SVML")
    return tuple(str(getattr(_config, name, None)) for name in names)


def _load(path: Path, context: Any) -> Any:
    """Return the compiled kernel kept in a file; None if there is none. A damaged file is deleted."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    found = None
    seal, body = content[:_SEAL], content[_SEAL:]
    if seal == _sealed(path, body):
        with contextlib.suppress(Exception):  # whole, yet unusable: a module it names was moved, say
            found = _numba.core.compiler.CompileResult._rebuild(context, *pickle.loads(body))  # noqa: S301, SLF001 - written by us
    with contextlib.suppress(OSError):
        if found is None:
            path.unlink(missing_ok=True)
        else:
            os.utime(path.parent)  # in use: not to be removed
    return found


def _write(path: Path, body: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, _sealed(path, body) + body)


def _sealed(path: Path, body: bytes) -> bytes:
    """Return the checksum of a file's content under its name, so that no file passes for another."""
    return hashlib.sha256(path.name.encode() + b"\0" + body).digest()


def _prepare(folder: Path) -> None:
    """Make the folder, and raise OSError where it cannot be written or the disk is full."""
    is_new = not folder.exists()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as probe:
        probe.write(bytes(4096))
    if is_new:
        with contextlib.suppress(OSError):  # another process may be tidying
            keep_newest(folder.parent.glob("kernels-" + 16 * "[0-9a-f]"), _N_FOLDERS, idle=_IDLE)


def _say_not_kept(error: OSError) -> None:
    # An error of the system has a strerror, our own only a text.
    reason = f"{error.strerror}; STOIC_CACHE_DIR may name another folder" if error.strerror else error
    _say_once("stoic is compiling kernels, 3 to 20 s of one processor in every process: %s", reason)


def _say_once(message: str, *details: object) -> None:
    if message not in _said:
        _said.add(message)
        _log.warning(message, *details)


try:
    _AT_IMPORT = fingerprint(Path(__file__).parent)
except OSError:
    _AT_IMPORT = ""
