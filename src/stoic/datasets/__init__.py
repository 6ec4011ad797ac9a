"""Data sets: seeded ones that have the shape of those in the paper."""
