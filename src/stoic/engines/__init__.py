"""Engines: what applies a solver's steps, a chunk at a time."""
