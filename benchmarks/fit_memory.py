"""The memory of a fit beside its data: peak of the resident set above what it was before, in a fresh process.

    python benchmarks/fit_memory.py

Linux only: the peak is reset by /proc/self/clear_refs.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse

_KINDS = {"dense float64": 400_000, "dense float32": 800_000, "CSR": 1_000_000}  # rows: 320 MB of numbers each
_COLUMNS, _PER_ROW = 100, 20  # of arrays; non-zeros of a CSR row
_MODELS = {"huber": {}, "squared": {"loss": "squared"}, "l1": {"penalty": "l1"}}


def main() -> None:
    """Print a table, a row for each kind of data and model."""
    print(f"{'data':15} {'model':8} {'X MB':>7} {'peak of fit MB':>15} {'seconds':>8}")
    for kind in _KINDS:
        for model in _MODELS:
            command = [sys.executable, __file__, kind, model]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # noqa: S603
            print(
                f"{kind:15} {model:8} {found['X']:7.0f} {found['peak']:15.0f} {found['seconds']:8.1f}", flush=True
            )


def measure(kind: str, model: str) -> dict[str, float]:
    """Return megabytes and seconds of a fit of data of that kind."""
    import stoic

    X, y, groups = _data(kind)
    settings = {"temperature": 4.0, "protect": "loss", **_MODELS[model]}
    stoic.GroupDRORegressor(**settings).fit(X[:1000], y[:1000], groups=groups[:1000])  # imports
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    began = time.perf_counter()
    stoic.GroupDRORegressor(**settings).fit(X, y, groups=groups)
    seconds = time.perf_counter() - began
    size = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return {"X": size / 1e6, "peak": _resident("VmHWM") - before, "seconds": seconds}


def _data(kind: str) -> tuple[np.ndarray | sparse.csr_array, np.ndarray, np.ndarray]:
    n, rng = _KINDS[kind], np.random.default_rng(0)
    if kind == "CSR":
        indices = rng.integers(0, 20_000, n * _PER_ROW, dtype=np.int32)
        indptr = np.arange(0, n * _PER_ROW + 1, _PER_ROW, dtype=np.int64).astype(np.int32)
        X = sparse.csr_array((rng.random(n * _PER_ROW), indices, indptr), shape=(n, 20_000))
        X.sum_duplicates()
        score = X @ rng.standard_normal(20_000)
    else:
        X = rng.standard_normal((n, _COLUMNS), dtype=np.float32 if kind.endswith("32") else np.float64)
        score = X[:, 0].astype(float) - X[:, 1]
    groups = rng.integers(6, size=n)
    return X, score + (1.0 + 0.2 * groups) * rng.standard_t(2.5, n), groups


def _resident(what: str) -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what))
    return int(line.split()[1]) / 1000.0


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(measure(sys.argv[1], sys.argv[2])))
    else:
        main()
