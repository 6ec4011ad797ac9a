"""Damaged and odd files, and what the commands say to each: python benchmarks/odd_files.py [--only TEXT].

Every file is made here. A command may refuse a file, in one line and with exit code 1 or 2, or take it; it must
not end in a traceback, by a signal, after a minute, or with more than a gigabyte of memory. The script ends with
exit code 1 where one does.
"""

import argparse
import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_PATIENCE, _MOST_MEMORY = 60.0, 1e9
_SHOWN = 110

Case = tuple[str, bytes, tuple[str, ...]]
"""A name, the content of the file, and the command, in which FILE, MODEL, ROWS and FOLDER stand for paths."""


class Ended(NamedTuple):
    """What became of a command."""

    code: int
    seconds: float
    memory: float
    said: str

    @property
    def fault(self) -> str:
        """What it must not have done, or nothing."""
        if self.code not in {0, 1, 2}:
            return f"ended with {self.code}"
        if "Traceback" in self.said:
            return "traceback"
        return "memory" if self.memory > _MOST_MEMORY else ""


def main() -> None:
    """Feed all files to the commands, and print what each said."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="Cases with this in their names.")
    only = parser.parse_args().only
    faults = n = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, content, command in cases(Path(folder)):
            if only not in name:
                continue
            ended = fed(Path(folder), name, content, command)
            n, faults = n + 1, faults + bool(ended.fault)
            shown = " ".join(ended.said.replace(folder + "/", "").split())[:_SHOWN]
            print(f"{name:<44} {ended.code:>3} {ended.seconds:5.1f} s {ended.memory / 1e6:5.0f} MB  "
                  f"{('!! ' + ended.fault + ': ') if ended.fault else ''}{shown!r}", flush=True)  # fmt: skip
    print(f"{n} files, {faults} faults")
    sys.exit(faults > 0)


def fed(folder: Path, name: str, content: bytes, command: tuple[str, ...]) -> Ended:
    """Return what became of a command on a file."""
    place = folder / "fed"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    path = place / name.rsplit(": ", maxsplit=1)[-1].replace(" ", "-").replace("/", "-")
    if name.startswith("store"):
        path = place / path.name.split("--")[-1]
    path.write_bytes(content)
    stands = {"FILE": path, "MODEL": folder / "model.stoic", "ROWS": folder / "rows.csv", "FOLDER": place}
    arguments = [str(stands.get(word, word)) for word in command]
    return run([sys.executable, "-m", "stoic", *arguments], place)


def run(command: list[str], place: Path) -> Ended:
    """Return what became of a process, its memory included."""
    said, start = tempfile.TemporaryFile(), time.monotonic()  # noqa: SIM115 - closed with the process
    process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, cwd=place)  # noqa: S603 - our own
    clock = threading.Timer(_PATIENCE, process.kill)
    clock.start()
    _, status, used = os.wait4(process.pid, 0)
    clock.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    said.seek(0)
    words = said.read(100_000).decode(errors="replace")
    return Ended(process.returncode, time.monotonic() - start, used.ru_maxrss * 1024.0, words)


def cases(folder: Path) -> Iterator[Case]:
    """Yield all files; makes the rows and the model that some go with."""
    rng = np.random.default_rng(0)
    rows = [f"{y:.4f},{x:.4f},{town},{g}" for y, x, town, g in zip(
        *rng.standard_normal((2, 200)), ["Ulm", "Bonn"] * 100, ["a", "b"] * 100, strict=True)]  # fmt: skip
    table = "\n".join(["y,x,town,g", *rows]) + "\n"
    (folder / "rows.csv").write_text(table, encoding="utf-8")
    model = folder / "model.stoic"
    fitted = ["fit", str(folder / "rows.csv"), "--target", "y", "--group", "g", "--out", str(model)]
    subprocess.run([sys.executable, "-m", "stoic", *fitted], check=True, capture_output=True)  # noqa: S603 - our own
    yield from models(model.read_bytes())
    yield from tables(table)
    yield from parquets()
    yield from sparse_rows()
    yield from stores(folder)


# Models

_OF_MODELS = ("inspect", "FILE"), ("predict", "FILE", "ROWS")


def models(whole: bytes) -> Iterator[Case]:
    """Yield files in the place of a model."""
    arrays, meta = parts_of(whole)
    rng = np.random.default_rng(1)
    plain: dict[str, bytes] = {
        "empty": b"",
        "a byte": b"P",
        "half": whole[: len(whole) // 2],
        "without its end": whole[:-1],
        "a bit flipped": whole[:500] + bytes([whole[500] ^ 4]) + whole[501:],
        "noise": rng.bytes(10_000),
        "a pickle": b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R.",
        "an npz": npz(w=np.ones(3)),
        "a deflated gigabyte": deflated("w.npy", b"\0"),
        "deflated settings": deflated("meta.json", b" "),
        "settings of 40 MB": sealed(zipped([("meta.json", b"[" + b"[]," * 13_000_000 + b"[]]")])),
        "settings nested deeply": sealed(zipped([("meta.json", b"[" * 1_000_000)])),
        "a shape of a terabyte": sealed(zipped([("meta.json", b"{}"), ("w.npy", header((10**11,)))])),
        "an array of objects": sealed(zipped([("meta.json", b"{}"), ("w.npy", header((1,), "|O") + bytes(8))])),
        "an array twice": sealed(zipped([("meta.json", b"{}"), *[("w.npy", npy(np.ones(1)))] * 2])),
        "another archive": archive({"w": np.ones(2)}, {"solver": "rosc"}),
        "format 99": archive(arrays, meta | {"format": 99}),
        "no loss": archive(arrays, {key: meta[key] for key in meta if key != "loss"}),
        "coefficients of NaN": archive(arrays | {"coef": arrays["coef"] * np.nan}, meta),
        "complex coefficients": archive(arrays | {"coef": arrays["coef"] * 1j}, meta),
        "too few coefficients": archive(arrays | {"coef": arrays["coef"][:1]}, meta),
        "no coefficients": archive({key: arrays[key] for key in arrays if key != "coef"}, meta),
        "a scale of zero": archive(arrays | {"scale": arrays["scale"] * 0.0}, meta),
        "a billion columns": archive(arrays, meta | {"facts": meta["facts"] | {"n_features_in_": 10**9}}),
        "labels of a gigabyte": archive(arrays, meta | labels("<U200000000", "a", "b")),
        "a target that is a list": archive(arrays, meta | {"columns": meta["columns"] | {"target": ["y"]}}),
        "categories that are numbers": archive(arrays, columns_with(meta, categories=[1, 2])),
        "names that steer": archive(arrays, meta | labels("<U9", "\x1b[31ma", "\u202eb")),
    }  # fmt: skip
    for number, (name, content) in enumerate(plain.items()):
        yield f"model: {name}", content, _OF_MODELS[number % 2]
    yield "model: a folder for predictions", whole, ("predict", "FILE", "ROWS", "--out", "FOLDER")
    yield "model: predictions over the rows", whole, ("predict", "FILE", "ROWS", "--out", "ROWS")


def labels(dtype: str, *values: str) -> dict[str, Any]:
    """Return the part of the settings that names the groups."""
    return {"labels": {"groups": {"dtype": dtype, "values": values}}}


def columns_with(meta: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return the settings with something else about the column of text."""
    columns = json.loads(json.dumps(meta["columns"]))
    next(code for code in columns["encoding"] if code["categories"])["categories"] = changes["categories"]
    return meta | {"columns": columns}


def parts_of(whole: bytes) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the settings of a model."""
    with np.load(io.BytesIO(whole)) as file:
        return {name: file[name] for name in file.files if name != "meta.json"}, json.loads(file["meta.json"])


def archive(arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> bytes:
    """Return an archive with the right checksum."""
    members = [(f"{name}.npy", npy(array)) for name, array in arrays.items()]
    return sealed(zipped([("meta.json", json.dumps(meta).encode()), *members]))


def sealed(content: bytes) -> bytes:
    """Return a zip file with the right checksum at its end."""
    seal = b"stoic sha256=" + hashlib.sha256(content).hexdigest().encode()
    return content[:-2] + struct.pack("<H", len(seal)) + seal


def deflated(name: str, byte: bytes) -> bytes:
    """Return an archive of a gigabyte of one byte, which is not held in memory here."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made, made.open(name, "w") as member:
        for _ in range(100):
            member.write(byte * 10**7)
    return sealed(file.getvalue())


def zipped(entries: list[tuple[str, bytes]], how: int = zipfile.ZIP_STORED) -> bytes:
    """Return a zip file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as made, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a name may be there twice
        for name, content in entries:
            made.writestr(name, content)
    return file.getvalue()


def npy(array: np.ndarray) -> bytes:
    """Return an array as NumPy writes it."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()


def npz(**arrays: np.ndarray) -> bytes:
    """Return arrays as NumPy writes them."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def header(shape: tuple[int, ...], dtype: str = "<f8") -> bytes:
    """Return the beginning of an array."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue()


# Tables

_FIT = ("fit", "FILE", "--target", "y", "--group", "g", "--out", "out.stoic")
_LOOK = ("inspect", "FILE", "--target", "y", "--group", "g")


def tables(table: str) -> Iterator[Case]:
    """Yield files in the place of a CSV file."""
    lines = table.splitlines()
    brackets = table.replace(",a\n", ",$10k-$20k\n").replace(",b\n", ",_$20k-$30k\n")
    wide = ",".join(["y", "g", *(f"x{j}" for j in range(3000))])
    found = {
        "empty.csv": b"",
        "blank.csv": b"\n\n\n",
        "head alone.csv": b"y,x,town,g\n",
        "one row.csv": "\n".join(lines[:2]).encode(),
        "nulls.csv": bytes(5000),
        "noise.csv": np.random.default_rng(2).bytes(5000),
        "Latin-1.csv": table.replace("Ulm", "Köln").encode("latin-1"),
        "UTF-16.csv": table.encode("utf-16"),
        "a mark first.csv": b"\xef\xbb\xbf" + table.encode(),
        "semicolons.csv": table.replace(",", ";").encode(),
        "a ragged row.csv": "\n".join([*lines[:50], "1,2", *lines[50:]]).encode(),
        "an open quote.csv": table.replace("Ulm", '"Ulm', 1).encode(),
        "a name twice.csv": table.replace("town", "x", 1).encode(),
        "a name that is empty.csv": table.replace("town", "", 1).encode(),
        "targets of words.csv": "\n".join([lines[0], *(f"w{i},1,Ulm,a" for i in range(50))]).encode(),
        "targets alike.csv": "\n".join([lines[0], *(f"1,{i},Ulm,{'ab'[i % 2]}" for i in range(50))]).encode(),
        "a target of 1e400.csv": table.replace(lines[3].split(",")[0], "1e400", 1).encode(),
        "a target of 1e300.csv": table.replace(lines[3].split(",")[0], "1e300", 1).encode(),
        "a missing target.csv": table.replace(lines[3].split(",")[0], "", 1).encode(),
        "groups that steer.csv": table.replace(",a\n", ",a\x1b[2J\n").replace("town", "to\u202ewn").encode(),
        "groups of money.csv": brackets.encode(),
        "a group for each row.csv": rows_of(lines[0], *(f"{i % 7},{i % 5},Ulm,g{i}" for i in range(2000))),
        "3000 columns.csv": rows_of(wide, *(f"{i},{'ab'[i % 2]}{',1' * 3000}" for i in range(9))),
        "cut off.csv.gz": gzip.compress(table.encode())[:-20],
        "not packed.csv.gz": table.encode(),
        "a workbook.xlsx": zipped([("xl/workbook.xml", b"<x/>")]),
        "records.json": b'[{"y": 1}]',
    }  # fmt: skip
    for number, (name, content) in enumerate(found.items()):
        yield f"table: {name}", content, _FIT if number % 2 or "groups" in name else _LOOK
    yield "table: out to a full device.csv", table.encode(), (*_FIT[:-1], "/dev/full")
    yield "table: out to no folder.csv", table.encode(), (*_FIT[:-1], "no/such/folder/out.stoic")
    yield "table: out over the rows.csv", table.encode(), (*_FIT[:-1], "FILE")


def rows_of(*lines: str) -> bytes:
    """Return lines as a file."""
    return "\n".join(lines).encode()


def parquets() -> Iterator[Case]:
    """Yield files in the place of a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    def of(columns: Any) -> bytes:
        file = io.BytesIO()
        parquet.write_table(columns, file)
        return file.getvalue()

    rng = np.random.default_rng(3)
    whole = of(pa.table({"y": rng.standard_normal(99), "x": rng.standard_normal(99), "g": ["a", "b", "c"] * 33}))
    found: dict[str, bytes] = {
        "empty.parquet": b"",
        "cut off.parquet": whole[: len(whole) // 2],
        "noise in the middle.parquet": whole[:200] + rng.bytes(300) + whole[500:],
        "a foot of noise.parquet": whole[:-60] + rng.bytes(52) + whole[-8:],
        "text.parquet": b"y,x,g\n1,2,a\n",
        "no rows.parquet": of(pa.table({"y": pa.array([], pa.float64()), "g": pa.array([], pa.string())})),
        "lists.parquet": of(pa.table({"y": [1.0, 2.0], "x": [[1], [2, 3]], "g": ["a", "b"]})),
        "nothing but nulls.parquet": of(pa.table({"y": [1.0, 2.0], "x": pa.nulls(2), "g": ["a", "b"]})),
    }
    for name, content in found.items():
        yield f"Parquet: {name}", content, _FIT


def sparse_rows() -> Iterator[Case]:
    """Yield files in the place of a LIBSVM file."""
    good = "".join(f"{i % 5} 1:{i} 3:{i % 7}\n" for i in range(99))
    found = {
        "empty.svm": b"",
        "words.svm": b"this is no table\n",
        "a column of zero.svm": b"1 0:2\n",
        "a column below zero.svm": b"1 -3:2\n",
        "a column of 2^40.svm": b"1 1099511627776:2\n2 1:1\n",
        "a column of 2^62.svm": b"1 4611686018427387904:2\n",
        "columns that fall.svm": b"1 3:1 1:2\n2 1:1\n",
        "a column twice.svm": b"1 1:1 1:2\n2 1:1\n",
        "NaN.svm": b"nan 1:1\n2 1:inf\n",
        "no columns.svm": b"1\n2\n3\n",
        "cut off.svm.bz2": bz2.compress(good.encode())[:-9],
        "cut off.svm.xz": lzma.compress(good.encode())[:-9],
        "nulls.svm": bytes(2000),
    }
    for name, content in found.items():
        yield f"LIBSVM: {name}", content, ("fit", "FILE", "--out", "out.stoic")


# Stores


def stores(folder: Path) -> Iterator[Case]:
    """Yield files in the place of the store of an experiment."""

    def of(*statements: str) -> bytes:
        path = folder / "made.sqlite"
        path.unlink(missing_ok=True)
        database = sqlite3.connect(path)
        for statement in statements:
            database.execute(statement)
        database.commit()
        database.close()
        return path.read_bytes()

    facts = "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
    endless = "CREATE VIEW runs AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"
    made: dict[str, Callable[[], bytes]] = {
        "empty": lambda: b"",
        "noise": lambda: np.random.default_rng(4).bytes(20_000),
        "another program's": lambda: of("CREATE TABLE songs (name TEXT)"),
        "half": lambda: of(facts, "INSERT INTO facts VALUES ('spec', '{}')")[:5000],
        "a spec that is no JSON": lambda: of(facts, "INSERT INTO facts VALUES ('spec', '{')"),
        "a spec that is a number": lambda: of(facts, "INSERT INTO facts VALUES ('spec', '7')"),
        "a spec of another kind": lambda: of(facts, "INSERT INTO facts VALUES ('spec', '{\"color\": 1}')"),
        "other columns": lambda: of(facts, "INSERT INTO facts VALUES ('spec', '{}')", "CREATE TABLE runs (a, b)"),
        "rows without end": lambda: of(facts, "INSERT INTO facts VALUES ('spec', '{}')", endless),
    }
    for kind in ("store.sqlite", "tails.sqlite"):
        for name, content in made.items():
            yield f"store: {name} -- {kind}", content(), ("report", "FOLDER")


if __name__ == "__main__":
    main()
