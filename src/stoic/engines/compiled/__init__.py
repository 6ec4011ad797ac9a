"""The compiled engine: problems, vectors and solvers as kernels take them."""
