"""Losses, outer functions and means of batches in kernels."""
