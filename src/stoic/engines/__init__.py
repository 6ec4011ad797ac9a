"""Engines: they apply a solver's steps, a chunk at a time."""
