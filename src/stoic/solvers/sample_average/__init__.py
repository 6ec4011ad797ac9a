"""The robust sample average: draws are kept, and their truncated means are minimized by Newton's method."""

from stoic.solvers.sample_average.rows import takes_rows as takes_rows
from stoic.solvers.sample_average.solver import SampleAverage as SampleAverage
