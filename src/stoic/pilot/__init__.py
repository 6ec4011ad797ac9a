"""A pilot on the data: constants estimated from a few samples, and practical settings that follow from them."""

from stoic.pilot.metric import Metric, learned_metric
from stoic.pilot.pilot import MOST_STAGES, Pilot, estimate_constants, measure_pilot, run_pilot
from stoic.pilot.starting import Found, PilotRows, draw_pilot, find_start, pilot_cost, pilot_size

__all__ = [
    "MOST_STAGES",
    "Found",
    "Metric",
    "Pilot",
    "PilotRows",
    "draw_pilot",
    "estimate_constants",
    "find_start",
    "learned_metric",
    "measure_pilot",
    "pilot_cost",
    "pilot_size",
    "run_pilot",
]
