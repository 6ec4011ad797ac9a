"""What cannot work is refused at the door: by name, with a remedy, and before anything is drawn."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import stoic
from catalog import CASES
from spies import Spy

PROBLEM = CASES["logsumexp-l2"].problem  # 4 groups, d = 10
X, Y, GROUPS = PROBLEM.inner.X, PROBLEM.inner.y, PROBLEM.inner.grouped_rows.codes


def solve_from(X=X, y=Y, groups=GROUPS, outer=None, regularizer=None):
    inner = stoic.GroupLoss(X, y, groups)
    problem = stoic.Problem(inner, outer or stoic.LogSumExp(2.0), regularizer or stoic.L2(0.1))
    return stoic.minimize(problem, "rrosc", budget=500, seed=0)


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


def overflowing():
    """Return a CSR matrix whose row offsets wrapped around at 2³¹."""
    matrix = sp.csr_array(X)
    matrix.indptr = matrix.indptr.copy()
    matrix.indptr[-1] = -(2**31)
    return matrix


def wrong_column():
    matrix = sp.csr_array(X)
    matrix.indices = changed(matrix.indices, 12, 10)
    return matrix


@pytest.mark.parametrize(
    ("arguments", "error", "fragment"),
    [
        ({"X": changed(X, (3, 2), math.nan)}, stoic.InvalidProblem, "X is nan in row 3, column 2"),
        ({"X": changed(X, (0, 9), math.inf)}, stoic.InvalidProblem, "X is inf in row 0, column 9"),
        ({"X": sp.csr_array(changed(X, (5, 1), math.nan))}, stoic.InvalidProblem, "X is nan in row 5, column 1"),
        ({"y": changed(Y, 7, math.nan)}, stoic.InvalidProblem, r"y\[7\] is nan"),
        ({"y": changed(Y, 8, -math.inf)}, stoic.InvalidProblem, r"y\[8\] is -inf"),
        ({"y": Y[:-1]}, stoic.InvalidProblem, "y has 239 entries, but X has 240 rows"),
        ({"groups": GROUPS[:-1]}, stoic.InvalidProblem, "groups has 239 entries, but X has 240 rows"),
        ({"X": X[:0], "y": Y[:0], "groups": GROUPS[:0]}, stoic.InvalidProblem, r"X has shape \(0, 10\)"),
        ({"X": X[:, 0]}, stoic.InvalidProblem, r"X has shape \(240,\)"),
        ({"X": X.astype(object)}, stoic.InvalidProblem, "X has dtype object"),
        ({"X": overflowing()}, stoic.InvalidProblem, "X.indptr falls .* at row 239"),
        ({"X": wrong_column()}, stoic.InvalidProblem, r"X.indices\[12\] = 10 in row 1 is no column of the 10"),
        ({"outer": stoic.MeanVariance(1.0)}, stoic.IncompatibleParts, "takes two values, .* not 4"),
        ({"outer": stoic.Linear([0.5, 0.5])}, stoic.IncompatibleParts, "weights has 2 entries for 4 values"),
        (
            {"outer": stoic.LogSumExp(1.0, prior=[1.0, 2.0, 3.0])},
            stoic.IncompatibleParts,
            "prior has 3 entries for 4",
        ),
        (
            {"regularizer": stoic.Box(np.zeros(3), 1.0)},
            stoic.IncompatibleParts,
            "does not fit w in .*Box has 3 bounds for 10 variables",
        ),
    ],
)
def test_a_problem_that_cannot_be_posed_is_refused(arguments, error, fragment):
    with pytest.raises(error, match=fragment):
        solve_from(**arguments)


@pytest.mark.parametrize(
    ("make", "fragment"),
    [
        (lambda: stoic.L2(-0.1), "alpha=-0.1"),
        (lambda: stoic.L1(math.nan), "alpha=nan"),
        (lambda: stoic.ElasticNet(1.0, l1_ratio=1.5), "l1_ratio=1.5"),
        (lambda: stoic.LogSumExp(-1.0), "temperature=-1.0"),
        (lambda: stoic.LogSumExp(0.0), "temperature=0.0"),
        (lambda: stoic.SmoothCVaR(1.5, 1.0), "level=1.5"),
        (lambda: stoic.SmallestBall(0.0), "delta=0.0"),
        (lambda: stoic.SmallestBall(1.0), "delta=1.0"),
        (lambda: stoic.robust_mean(np.ones(100), delta=-0.5), "delta=-0.5"),
        (lambda: stoic.MSCG(step_size=-0.1), "step_size=-0.1"),
        (lambda: stoic.MSCG(step_size=math.nan), "step_size=nan"),
        (lambda: stoic.MSCG(step_size="0.1"), "step_size='0.1'"),
        (lambda: stoic.MSCG(step_size=math.inf), "step_size=inf"),
        (lambda: stoic.MSCG(n_steps=0), "n_steps=0"),
        (lambda: stoic.MSCG(batch_size=2.0), "batch_size=2.0"),
        (lambda: stoic.ROSC(batch_size=0), "batch_size=0"),
        (lambda: stoic.ROSC(batch_size=True), "batch_size=True"),
        (lambda: stoic.ROSC(radius=0), "radius=0"),
        (lambda: stoic.ROSC(radius=-1.0), "radius=-1.0"),
        (lambda: stoic.ROSC(reference_size=0), "reference_size=0"),
        (lambda: stoic.ROSC(levels=3.0), "levels=3.0"),
        (lambda: stoic.ROSC(reference_mean=0.1), "reference_mean=0.1"),
        (lambda: stoic.MSCG(mean=0.1), "mean=0.1"),
        (lambda: stoic.Calibrated(C_g=-1.0, L_g=1.0), "C_g=-1.0"),
        (lambda: stoic.Calibrated(C_g=1.0, L_g=1.0, factor=-2.0), "factor=-2.0"),
        (lambda: stoic.RROSC(n_stages=0), "n_stages=0"),
        (lambda: stoic.RSMD(factor=-1.0), "factor=-1.0"),
        (lambda: stoic.SCGD(steps=0.1), r"steps=0.1 is not a PowerLaw; use PowerLaw\(0.1\)"),
        (lambda: stoic.SCGD(weights=stoic.PowerLaw(2.0)), "weights=.*start <= 1"),
        (lambda: stoic.SCGD(answer="best"), "answer='best'"),
        (lambda: stoic.PowerLaw(0.0), "start=0.0"),
        (lambda: stoic.PowerLaw(1.0, power=-1.0), "power=-1.0"),
        (lambda: stoic.PowerLaw(1.0, delay=0.0), "delay=0.0"),
        (lambda: stoic.ALEXR(weight=1.5), "weight=1.5"),
        (lambda: stoic.ALEXR(extrapolation=-1.0), "extrapolation=-1.0"),
        (lambda: stoic.ClippedSGD(clip=0.0), "clip=0.0"),
        (lambda: stoic.CIVR(anchor_size=-5), "anchor_size=-5"),
        (lambda: stoic.CIVR(anchor_size=2.5), "anchor_size=2.5"),
        (lambda: stoic.RCIVR(rule="both"), "rule='both'"),
        (lambda: stoic.ProxBoost(n_trials=0), "n_trials=0"),
        (lambda: stoic.ProxBoost(mu=0.0), "mu=0.0"),
        (lambda: stoic.ProxBoost(solver="mscg"), "solver='mscg'"),
        (lambda: stoic.Restarted([]), "stages is empty"),
        (lambda: stoic.Restarted(["mscg"]), "stages"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(make, fragment):
    with pytest.raises(stoic.InvalidParameter, match=fragment):
        make()


@pytest.mark.parametrize(
    ("options", "error", "fragment"),
    [
        ({"budget": 0}, stoic.InvalidParameter, "budget=0 is not a whole number >= 1"),
        ({"budget": -5}, stoic.InvalidParameter, "budget=-5"),
        ({"budget": 1000.0}, stoic.InvalidParameter, "budget=1000.0"),
        ({"budget": True}, stoic.InvalidParameter, "budget=True"),
        ({"budget": "many"}, stoic.InvalidParameter, "budget='many'"),
        ({"delta": 0.0}, stoic.InvalidParameter, "delta=0.0 is not strictly between 0 and 1"),
        ({"delta": 1.0}, stoic.InvalidParameter, "delta=1.0"),
        ({"delta": math.nan}, stoic.InvalidParameter, "delta=nan"),
        ({"evaluate_every": 0}, stoic.InvalidParameter, "evaluate_every=0"),
        ({"evaluate_every": 2.5}, stoic.InvalidParameter, "evaluate_every=2.5"),
        ({"chunk_size": 0}, stoic.InvalidParameter, "chunk_size=0"),
        ({"tol": -1e-3}, stoic.InvalidParameter, "tol=-0.001 is not a positive"),
        ({"tol": 0.0}, stoic.InvalidParameter, "tol=0.0"),
        ({"max_seconds": 0}, stoic.InvalidParameter, "max_seconds=0"),
        ({"max_seconds": math.nan}, stoic.InvalidParameter, "max_seconds=nan"),
        ({"method": "sgdd"}, stoic.InvalidParameter, "method='sgdd' is unknown; did you mean"),
        ({"method": 7}, stoic.InvalidParameter, "method=7"),
        ({"method": "rsmd"}, stoic.IncompatibleParts, "RSMD needs a linear outer function"),
        ({"w0": np.zeros(9)}, stoic.InvalidProblem, r"w0 has shape \(9,\), but the problem has 10 variables"),
        ({"w0": np.zeros((10, 1))}, stoic.InvalidProblem, r"w0 has shape \(10, 1\)"),
        ({"w0": changed(np.zeros(10), 4, math.nan)}, stoic.InvalidProblem, r"w0\[4\] is not finite"),
        ({"w0": ["a"] * 10}, stoic.InvalidProblem, "w0"),
        ({"w0": np.zeros(10, dtype=complex)}, stoic.InvalidProblem, "w0"),
        ({"seed": -1}, stoic.InvalidParameter, "seed=-1"),
        ({"seed": "lucky"}, stoic.InvalidParameter, "seed='lucky'"),
        ({"observers": {"norm": 3}}, stoic.InvalidParameter, "observers.*norm"),
        ({"observers": [np.linalg.norm]}, stoic.InvalidParameter, "observers"),
        ({"callback": 3}, stoic.InvalidParameter, "callback=3"),
    ],
)
def test_a_call_that_cannot_work_is_refused_before_anything_is_drawn(options, error, fragment):
    spy = Spy(PROBLEM.inner)
    with pytest.raises(error, match=fragment):
        stoic.minimize(PROBLEM.with_inner(spy), **({"budget": 500} | options))
    assert spy.calls == 0


def test_a_start_outside_the_domain_is_refused_before_anything_is_drawn():
    spy = Spy(PROBLEM.inner)
    problem = stoic.Problem(spy, PROBLEM.outer, stoic.Simplex())
    with pytest.raises(stoic.InvalidProblem, match=r"w0 is outside the domain of Simplex.*regularizer.prox"):
        stoic.minimize(problem, "rrosc", budget=500, w0=np.ones(10))
    assert spy.calls == 0


def test_a_method_outside_its_assumptions_is_refused_before_anything_is_drawn():
    spy = Spy(PROBLEM.inner)
    problem = stoic.Problem(spy, PROBLEM.outer, stoic.L1(0.1))
    with pytest.raises(stoic.IncompatibleParts, match=r"proxBoost needs a strongly convex objective.*give mu"):
        stoic.minimize(problem, "prox-boost", budget=500)
    assert spy.calls == 0


@pytest.mark.parametrize("problem", [None, PROBLEM.inner, "problem"])
def test_something_that_is_not_a_problem_is_refused(problem):
    with pytest.raises(stoic.InvalidProblem, match="Problem"):
        stoic.minimize(problem, "rrosc", budget=500)


@pytest.mark.parametrize("method", ["civr", "rcivr", stoic.CIVR(anchor_size=stoic.EVERYTHING)])
def test_a_stream_has_no_everything(method):
    inner = stoic.FunctionInner(
        lambda w, x: (x - w) ** 2,
        lambda w, x: 2.0 * (w - x)[:, :, None],
        shape=(1, 1),
        draw=lambda size, rng: rng.standard_normal((size, 1)),
    )
    problem = stoic.Problem(inner, stoic.Linear())
    if isinstance(method, str):  # the rule for expectations needs no end of the data
        assert stoic.minimize(problem, method, budget=500, seed=0).success
        return
    with pytest.raises(stoic.IncompatibleParts, match="needs a finite sum, but the inner part is a stream"):
        stoic.minimize(problem, method, budget=500, seed=0)


def test_the_finite_sum_rule_on_a_stream_is_refused():
    inner = stoic.FunctionInner(
        lambda w, x: (x - w) ** 2,
        lambda w, x: 2.0 * (w - x)[:, :, None],
        shape=(1, 1),
        draw=lambda size, rng: rng.standard_normal((size, 1)),
    )
    with pytest.raises(stoic.IncompatibleParts, match="stream"):
        stoic.minimize(stoic.Problem(inner, stoic.Linear()), stoic.RCIVR(rule="finite-sum"), budget=500, seed=0)


@pytest.mark.parametrize("make", [lambda: stoic.SolveFailed("x"), lambda: stoic.IncompatibleParts("x")])
def test_every_error_is_a_stoic_error(make):
    assert isinstance(make(), stoic.StoicError)
