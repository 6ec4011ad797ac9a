"""``stoic tails``: the confidence study, end to end."""

from typing import Any

from stoic.cli.options import COUNTS, NAMES, NUMBERS
from stoic.cli.study import Study, study_command

QUICK: dict[str, Any] = {
    "noises": ("gaussian", "t4.5", "t2.5"),
    "places": ("labels",),
    "runs": 200,
    "samples": 5000,
    "tune_runs": 10,
    "steps": (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0),
    "rates": (5000, 10_000, 20_000, 40_000),
    "rate_runs": 20,
    "rate_noises": ("gaussian", "t2.5"),
}
_OPTIONS = (  # flag, type, help; the defaults and the checks are in `TailsSpec`
    ("--noises", NAMES, "gaussian,t4.5,t2.5,pareto2.5,lognormal (default)."),
    ("--places", NAMES, "Where the noise is: labels,features,both (default)."),
    ("--methods", NAMES, "Ours: rrosc-tracked,rrosc-growing,rrosc,rmscg-robust,rrosc-m1; rivals, which are "
     "tuned: rmscg,asc-pg,rcivr,scgd,clipped-sgd,prox-boost (all but rrosc-m1)."),
    ("--runs", int, "Runs of each method in each setting (2000)."),
    ("--samples", int, "Samples of each group in a run (20000)."),
    ("--rates", COUNTS, "Samples of each group, for the gap against samples (10000,...,400000), or none."),
    ("--rate-runs", int, "Runs with each of these (200)."),
    ("--rate-noises", NAMES, "Noises of the labels in these (gaussian,t4.5,t2.5)."),
    ("--rate-methods", NAMES, "Methods in these (rrosc-tracked,rrosc-growing,rrosc-m1)."),
    ("--steps", NUMBERS, "Step sizes that rivals choose from (1e-4,3e-4,...,10)."),
    ("--tune-runs", int, "Runs of each step size by which they choose (50)."),
    ("--deviations", NUMBERS, "Of the label noise in each group (1,1,1,1)."),
    ("--seed", int, "Of rows and draws (0)."),
)  # fmt: skip


@study_command(
    _OPTIONS,
    folder="tails",
    smaller=QUICK,
    about_quick="Three settings, 200 runs of 5000 samples: about a minute on two processors.",
)
def tails() -> Study:
    """Measure confidence: quantiles of F(w) - F* over thousands of runs, where the optimum is known.

    Every run draws fresh samples from a law, each once. Rivals first choose a step size in each setting; ours run
    as they are. Results go to the folder --out as they come. Ctrl-C and kill lose nothing but the runs at hand:
    the same command goes on, and with a larger --runs it adds some.
    """
    from stoic.studies.confidence.runner import run_tails  # noqa: PLC0415 - heavy, and --help does without
    from stoic.studies.confidence.spec import TailsSpec  # noqa: PLC0415

    return Study(TailsSpec, run_tails)
