"""Kernels: the compiled loops, the only place that imports numba."""
