"""Stochastic compositional optimization that stays calm under heavy-tailed noise."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "stoic.errors": (
        "DamagedFile",
        "IncompatibleParts",
        "InvalidParameter",
        "InvalidProblem",
        "MissingDependency",
        "SolveFailed",
        "StoicError",
    ),
    "stoic.estimators.base": ("MissingGroupsWarning",),
    "stoic.estimators.classifier": ("GroupDROClassifier",),
    "stoic.estimators.displays.convergence": ("ConvergenceDisplay",),
    "stoic.estimators.displays.group_risk": ("GroupRiskDisplay",),
    "stoic.estimators.displays.tail": ("TailDisplay",),
    "stoic.estimators.models": ("load_model", "save_model"),
    "stoic.estimators.regressor": ("GroupDRORegressor",),
    "stoic.estimators.scoring": ("GroupScorer", "robust_score", "worst_group_score"),
    "stoic.estimators.tails": ("tail_index",),
    "stoic.inners.functions": ("FunctionInner",),
    "stoic.inners.group_loss": ("GroupLoss",),
    "stoic.inners.group_softmax": ("GroupSoftmax",),
    "stoic.inners.moments": ("Moments",),
    "stoic.losses": ("Absolute", "Huber", "Logistic", "Quantile", "Squared"),
    "stoic.means": (
        "GeometricMedianOfMeans",
        "Mean",
        "MedianOfMeans",
        "SmallestBall",
        "TrimmedMean",
        "median_of_means",
        "robust_mean",
        "smallest_ball_mean",
    ),
    "stoic.balls": ("prox_in_ball",),
    "stoic.certificate.certificate": ("Certificate",),
    "stoic.certificate.certifying": ("certify",),
    "stoic.driver": ("minimize",),
    "stoic.mean_variance": ("MeanVariance",),
    "stoic.outers": ("Linear", "LogSumExp", "SmoothCVaR"),
    "stoic.pilot": ("estimate_constants",),
    "stoic.problem": ("Problem",),
    "stoic.regularizers": ("L1", "L2", "Box", "ElasticNet", "Simplex", "Zero"),
    "stoic.result": ("Result", "Status"),
    "stoic.plans": ("Constants", "Plan"),
    "stoic.growing": ("growing_plan",),
    "stoic.schedules": ("theorem_1", "theorem_2", "theorem_3"),
    "stoic.solvers.alexr": ("ALEXR",),
    "stoic.solvers.asc_pg": ("ASCPG",),
    "stoic.solvers.base": ("AUTO", "METHODS", "PowerLaw"),
    "stoic.solvers.civr": ("CIVR", "EVERYTHING"),
    "stoic.solvers.clipped_sgd": ("ClippedSGD",),
    "stoic.solvers.mscg": ("MSCG",),
    "stoic.solvers.newton": ("Newton",),
    "stoic.solvers.prox_boost": ("ProxBoost",),
    "stoic.solvers.rcivr": ("RCIVR",),
    "stoic.solvers.restarted": ("Restarted",),
    "stoic.solvers.rmscg": ("RMSCG",),
    "stoic.solvers.rosc": ("ROSC", "Calibrated"),
    "stoic.solvers.rrosc": ("RROSC",),
    "stoic.solvers.rrosc_growing": ("RROSCGrowing",),
    "stoic.solvers.rrosc_tracked": ("RROSCTracked",),
    "stoic.solvers.rsmd": ("RSMD",),
    "stoic.solvers.scgd": ("SCGD",),
    "stoic.solvers.scsc": ("SCSC",),
    "stoic.solvers.tracked_rosc": ("TrackedROSC",),
    "stoic.tracking_plan": ("tracked_plan",),
    "stoic.truncation": ("Levels",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """Load a public name from its home on first use, which keeps ``import stoic`` fast."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'stoic' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
