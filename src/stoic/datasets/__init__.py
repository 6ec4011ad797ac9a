"""Data sets: one in the shape of the paper's, noise on labels, and readers of LIBSVM, CSV and Parquet files."""
