"""Vectors in kernels: the two forms in which a step costs what its rows cost."""
