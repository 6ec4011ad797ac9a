"""`minimize`: the loop, the result, and what its message says."""
