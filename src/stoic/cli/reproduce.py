"""``stoic reproduce``: the paper's experiment, end to end."""

from typing import Any

from stoic.cli.options import NAMES, NUMBERS
from stoic.cli.study import Study, study_command

QUICK: dict[str, Any] = {
    "size": 0.2,
    "alphas": tuple(float(f"1e{k}") for k in range(-5, 0)),
    "steps": tuple(float(f"1e{k}") for k in range(-4, 4)),
    "budget": 80_000,
}
_OPTIONS = (  # flag, type, help; the defaults and the checks are in `Spec`
    ("--data", str, "e2006-like (default), e2006, or the path of a LIBSVM, CSV or Parquet file."),
    ("--data-dir", str, "Where E2006.train.bz2 and E2006.test.bz2 are, for --data e2006."),
    ("--size", float, "Share of E2006's rows and columns that e2006-like has (1)."),
    ("--target", str, "The column to predict, in a CSV or Parquet file."),
    ("--group", str, "The column that names the groups, for --noise none."),
    ("--test-share", float, "Share of a file's rows to test on (0.2)."),
    ("--noise", NAMES, "Kinds of label noise (the paper's six), or none."),
    ("--sparse-share", float, "Share of the rows that sparse noise hits (0.1)."),
    ("--losses", NAMES, "squared (default), huber, absolute; the first makes the figures."),
    ("--temperatures", NUMBERS, "Of KL group DRO (1000); the first makes the figures."),
    ("--regularizers", NAMES, "l1,l2 (default)."),
    ("--methods", NAMES, "rrosc,rmscg,asc-pg,rcivr,rrosc-tracked,auto (default), or any other of stoic.minimize."),
    ("--alphas", NUMBERS, "Weights of the regularizer to choose from (1e-5,...,1e5)."),
    ("--steps", NUMBERS, "Step sizes to choose from (1e-5,...,1e5)."),
    ("--radius", float, "Of RROSC's first ball (100)."),
    ("--batch-size", int, "Samples of each group in a batch (4)."),
    ("--n-stages", int, "Stages of the methods with restarts (4)."),
    ("--budget", int, "Samples of a run (400000)."),
    ("--trials", int, "Trials with fresh noise (5)."),
    ("--selection", str, "plain (default): mean squared validation error; robust: median of means."),
    ("--validation-share", float, "Share of the training rows to choose on (0.1)."),
    ("--test-labels", str, "clean (default) or noisy."),
    ("--evaluations", int, "Points of a curve (40)."),
    ("--seed", int, "Of data, noise and draws (0)."),
)


@study_command(
    _OPTIONS, folder="reproduced", smaller=QUICK, about_quick="Smaller data, a smaller grid and budget."
)
def reproduce() -> Study:
    """Run the paper's experiment: choose by a grid, then compare methods over trials with fresh noise.

    Results go to the folder --out as they come. Ctrl-C and kill lose nothing but the runs at hand: the same
    command goes on. In the end there are tables, figures, and report.html.
    """
    from stoic.studies.paper.runner import run_experiment  # noqa: PLC0415 - heavy, and --help does without
    from stoic.studies.paper.spec import Spec  # noqa: PLC0415

    return Study(Spec, run_experiment)
