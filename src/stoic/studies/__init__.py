"""Experiments: measurements of the library on data it makes itself."""
