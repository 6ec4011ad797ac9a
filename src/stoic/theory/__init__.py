"""The theorems as code: from constants of Assumption 1 to plans of stages."""
