"""Mutants: small errors put into copies of the sources, to see whether a test notices."""
