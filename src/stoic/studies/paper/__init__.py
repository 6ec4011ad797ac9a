"""The paper's experiment (Section 5)."""
