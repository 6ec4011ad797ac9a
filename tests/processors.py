"""Environments in which one machine stands for others: code for other processors, thread counts, another place."""

from numpy._core import _multiarray_umath as numpy_core

HAS = numpy_core.__cpu_features__
ONE_THREAD, TWO_THREADS = (
    dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), count) for count in "12"
)
GENERIC = {"NUMBA_CPU_NAME": "generic"}
BLAS = [  # the processor OpenBLAS is told, and the instructions it takes there without looking for them
    ("Prescott", "SSE3", ONE_THREAD),
    ("Nehalem", "SSE42", TWO_THREADS),
    ("Haswell", "AVX2", TWO_THREADS),
    ("SkylakeX", "AVX512_SKX", ONE_THREAD),
]
OLDER = {  # NumPy and the C library as on a processor without AVX2 and FMA
    "NPY_DISABLE_CPU_FEATURES": " ".join(name for name in numpy_core.__cpu_dispatch__ if HAS[name]),
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4",
}
ELSEWHERE = {"LC_ALL": "C", "TZ": "Asia/Kathmandu", "COLUMNS": "70"}


def environments() -> dict[str, dict[str, str]]:
    """Return the variables of each environment that this machine can stand for, by its name."""
    blas = {name: {"OPENBLAS_CORETYPE": name, **threads} for name, needed, threads in BLAS if HAS.get(needed)}
    return {
        "numba for generic": GENERIC,
        **{f"OpenBLAS for {name}": variables for name, variables in blas.items()},
        "NumPy and libm without AVX2": OLDER | TWO_THREADS,
        "all of the oldest": GENERIC | OLDER | blas.get("Prescott", ONE_THREAD),
    }
