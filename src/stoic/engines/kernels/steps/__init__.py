"""The steps of the solvers in kernels, one file a family."""
