"""Studies of the library: the paper's experiment, confidence under heavy tails, and benchmarks."""
