"""A pilot on the data: constants estimated from a few samples, and practical settings that follow from them."""

from stoic.pilot.pilot import (
    MOST_STAGES,
    Pilot,
    PilotRows,
    draw_pilot,
    estimate_constants,
    measure_pilot,
    pilot_cost,
    run_pilot,
)

__all__ = [
    "MOST_STAGES",
    "Pilot",
    "PilotRows",
    "draw_pilot",
    "estimate_constants",
    "measure_pilot",
    "pilot_cost",
    "run_pilot",
]
