"""Stochastic compositional optimization that stays calm under heavy-tailed noise."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from stoic.certificate.certificate import Certificate as Certificate
    from stoic.certificate.certifying import certify as certify
    from stoic.engines.engine import Status as Status
    from stoic.errors import (
        DamagedFile as DamagedFile,
        IncompatibleParts as IncompatibleParts,
        InvalidParameter as InvalidParameter,
        InvalidProblem as InvalidProblem,
        MissingDependency as MissingDependency,
        SolveFailed as SolveFailed,
        StoicError as StoicError,
    )
    from stoic.estimators.base import MissingGroupsWarning as MissingGroupsWarning
    from stoic.estimators.classifier import GroupDROClassifier as GroupDROClassifier
    from stoic.estimators.displays.convergence import ConvergenceDisplay as ConvergenceDisplay
    from stoic.estimators.displays.group_risk import GroupRiskDisplay as GroupRiskDisplay
    from stoic.estimators.displays.tail import TailDisplay as TailDisplay
    from stoic.estimators.displays.tradeoff import GroupTradeoffDisplay as GroupTradeoffDisplay
    from stoic.estimators.files import load_model as load_model, save_model as save_model
    from stoic.estimators.regressor import GroupDRORegressor as GroupDRORegressor
    from stoic.estimators.scoring import (
        GroupScorer as GroupScorer,
        robust_score as robust_score,
        worst_group_score as worst_group_score,
    )
    from stoic.estimators.tail_index import tail_index as tail_index
    from stoic.inners.functions import FunctionInner as FunctionInner
    from stoic.inners.group_loss import GroupLoss as GroupLoss
    from stoic.inners.group_softmax import GroupSoftmax as GroupSoftmax
    from stoic.inners.moments import Moments as Moments
    from stoic.losses import (
        Absolute as Absolute,
        Huber as Huber,
        Logistic as Logistic,
        Quantile as Quantile,
        Squared as Squared,
    )
    from stoic.means import (
        GeometricMedianOfMeans as GeometricMedianOfMeans,
        Mean as Mean,
        MedianOfMeans as MedianOfMeans,
        SmallestBall as SmallestBall,
        TrimmedMean as TrimmedMean,
        median_of_means as median_of_means,
        robust_mean as robust_mean,
        smallest_ball_mean as smallest_ball_mean,
    )
    from stoic.outers import (
        Linear as Linear,
        LogSumExp as LogSumExp,
        MeanVariance as MeanVariance,
        SmoothCVaR as SmoothCVaR,
    )
    from stoic.pilot import estimate_constants as estimate_constants
    from stoic.problem import Problem as Problem
    from stoic.regularizers import (
        L1 as L1,
        L2 as L2,
        Box as Box,
        ElasticNet as ElasticNet,
        Simplex as Simplex,
        Zero as Zero,
        prox_in_ball as prox_in_ball,
    )
    from stoic.solve.driver import minimize as minimize
    from stoic.solve.result import Result as Result
    from stoic.solvers.alexr import ALEXR as ALEXR, SOX as SOX
    from stoic.solvers.asc_pg import ASCPG as ASCPG
    from stoic.solvers.auto import Auto as Auto
    from stoic.solvers.base import AUTO as AUTO, METHODS as METHODS, PowerLaw as PowerLaw
    from stoic.solvers.civr import CIVR as CIVR, EVERYTHING as EVERYTHING, RCIVR as RCIVR
    from stoic.solvers.clipped_sgd import ClippedSGD as ClippedSGD
    from stoic.solvers.mscg import MSCG as MSCG
    from stoic.solvers.newton import Newton as Newton
    from stoic.solvers.prox_boost import ProxBoost as ProxBoost
    from stoic.solvers.restarted import Restarted as Restarted
    from stoic.solvers.rmscg import RMSCG as RMSCG
    from stoic.solvers.rosc import ROSC as ROSC, Calibrated as Calibrated
    from stoic.solvers.rrosc import RROSC as RROSC, RROSCGrowing as RROSCGrowing, RROSCTracked as RROSCTracked
    from stoic.solvers.rsmd import RSMD as RSMD
    from stoic.solvers.sample_average import SampleAverage as SampleAverage
    from stoic.solvers.scgd import SCGD as SCGD
    from stoic.solvers.scsc import SCSC as SCSC
    from stoic.solvers.tracked_rosc import TrackedROSC as TrackedROSC
    from stoic.solvers.tracked_sox import TrackedSOX as TrackedSOX
    from stoic.theory.growing_batches import growing_plan as growing_plan
    from stoic.theory.plans import Constants as Constants, Plan as Plan
    from stoic.theory.theorems import theorem_1 as theorem_1, theorem_2 as theorem_2, theorem_3 as theorem_3
    from stoic.theory.tracked_values import tracked_plan as tracked_plan
    from stoic.truncation import Levels as Levels

# Where each public name lives; the imports above are the same, for type checkers and editors.
_HOMES = {
    "stoic.certificate.certificate": ("Certificate",),
    "stoic.certificate.certifying": ("certify",),
    "stoic.engines.engine": ("Status",),
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
    "stoic.estimators.displays.tradeoff": ("GroupTradeoffDisplay",),
    "stoic.estimators.files": (
        "load_model",
        "save_model",
    ),
    "stoic.estimators.regressor": ("GroupDRORegressor",),
    "stoic.estimators.scoring": (
        "GroupScorer",
        "robust_score",
        "worst_group_score",
    ),
    "stoic.estimators.tail_index": ("tail_index",),
    "stoic.inners.functions": ("FunctionInner",),
    "stoic.inners.group_loss": ("GroupLoss",),
    "stoic.inners.group_softmax": ("GroupSoftmax",),
    "stoic.inners.moments": ("Moments",),
    "stoic.losses": (
        "Absolute",
        "Huber",
        "Logistic",
        "Quantile",
        "Squared",
    ),
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
    "stoic.outers": (
        "Linear",
        "LogSumExp",
        "MeanVariance",
        "SmoothCVaR",
    ),
    "stoic.pilot": ("estimate_constants",),
    "stoic.problem": ("Problem",),
    "stoic.regularizers": (
        "Box",
        "ElasticNet",
        "L1",
        "L2",
        "Simplex",
        "Zero",
        "prox_in_ball",
    ),
    "stoic.solve.driver": ("minimize",),
    "stoic.solve.result": ("Result",),
    "stoic.solvers.alexr": ("ALEXR", "SOX"),
    "stoic.solvers.tracked_sox": ("TrackedSOX",),
    "stoic.solvers.asc_pg": ("ASCPG",),
    "stoic.solvers.auto": ("Auto",),
    "stoic.solvers.base": (
        "AUTO",
        "METHODS",
        "PowerLaw",
    ),
    "stoic.solvers.civr": (
        "CIVR",
        "EVERYTHING",
        "RCIVR",
    ),
    "stoic.solvers.clipped_sgd": ("ClippedSGD",),
    "stoic.solvers.mscg": ("MSCG",),
    "stoic.solvers.newton": ("Newton",),
    "stoic.solvers.prox_boost": ("ProxBoost",),
    "stoic.solvers.restarted": ("Restarted",),
    "stoic.solvers.rmscg": ("RMSCG",),
    "stoic.solvers.rosc": (
        "Calibrated",
        "ROSC",
    ),
    "stoic.solvers.rrosc": (
        "RROSC",
        "RROSCGrowing",
        "RROSCTracked",
    ),
    "stoic.solvers.rsmd": ("RSMD",),
    "stoic.solvers.sample_average": ("SampleAverage",),
    "stoic.solvers.scgd": ("SCGD",),
    "stoic.solvers.scsc": ("SCSC",),
    "stoic.solvers.tracked_rosc": ("TrackedROSC",),
    "stoic.theory.growing_batches": ("growing_plan",),
    "stoic.theory.plans": (
        "Constants",
        "Plan",
    ),
    "stoic.theory.theorems": (
        "theorem_1",
        "theorem_2",
        "theorem_3",
    ),
    "stoic.theory.tracked_values": ("tracked_plan",),
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
