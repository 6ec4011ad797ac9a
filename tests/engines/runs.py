"""Solvers, data and parts for both engines to run, and what it means that two runs agree."""

import functools
import itertools
import math

import numpy as np
import scipy.sparse as sp

import stoic
from stoic.engines.compiled.engine import CompiledEngine
from stoic.engines.engine import Chunk, Limits
from stoic.engines.plain import run_chunk
from stoic.inners.metered import Metered
from stoic.solvers.prox_boost import ProxBoosted, ProxStage

P, ROWS, COLUMNS = 4, 90, 6
TOLERANCE = 1e-9

# --- parts ---

LOSSES = {
    "squared": stoic.Squared(),
    "huber": stoic.Huber(1.5),
    "absolute": stoic.Absolute(1.0),  # curvatures of order 1: steps contract, so that rounding does not grow
    "quantile": stoic.Quantile(0.7, 1.0),
    "logistic": stoic.Logistic(),
}
OUTERS = {
    "linear": stoic.Linear(),
    "weighted": stoic.Linear([0.4, 0.1, 0.0, 0.7]),
    "logsumexp": stoic.LogSumExp(2.0),
    "prior": stoic.LogSumExp(3.0, prior=[1.0, 2.0, 0.0, 1.5]),
    "cvar": stoic.SmoothCVaR(0.4, 1.0),
    "baseline": stoic.LogSumExp(2.0, baseline=[1.0, -0.5, 0.0, 2.0]),
    "cvar-baseline": stoic.SmoothCVaR(0.4, 1.0, baseline=[1.0, -0.5, 0.0, 2.0]),
    "scale": stoic.LogSumExp(2.0, baseline=[1.0, -0.5, 0.0, 2.0], scale=[1.0, 2.0, 1.5, 3.0]),
}
REGULARIZERS = {
    "zero": stoic.Zero(),
    "l2": stoic.L2(2.0),
    "l1": stoic.L1(0.1),
    "elastic-net": stoic.ElasticNet(0.6, 0.3),
}


def _csr(X, index, dtype):
    matrix = sp.csr_array(np.where(np.abs(X) > 0.7, X, 0.0).astype(dtype))
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    return matrix


def _wide(X):
    """Return rows so long that the kernels hold the reference of ROSC: see `Form`."""
    return np.hstack([X, *(0.3 * np.sin(k * X) for k in range(1, 7))])


STORAGE = {
    "dense": lambda X: X,
    "wide": _wide,
    "fortran": np.asfortranarray,
    "csr-int32": lambda X: _csr(X, np.int32, np.float64),
    "csr-int64": lambda X: _csr(X, np.int64, np.float64),
    "dense-float32": lambda X: X.astype(np.float32),
    "fortran-float32": lambda X: np.asfortranarray(X, dtype=np.float32),
    "csr-int32-float32": lambda X: _csr(X, np.int32, np.float32),
    "csr-int64-float32": lambda X: _csr(X, np.int64, np.float32),
}
COMPILED_OFTEN = ("dense", "wide", "csr-int32")  # two types of X: the others are compiled for `every`


@functools.cache
def _table():
    """Return features, targets with heavy tails, and groups that differ."""
    rng = np.random.default_rng(17)
    groups = np.arange(P * ROWS) % P
    X = rng.standard_normal((P * ROWS, COLUMNS)) * np.linspace(1.0, 0.6, COLUMNS)
    models = 1.0 + 0.4 * rng.standard_normal((P, COLUMNS))
    y = (X * models[groups]).sum(axis=1) + 0.5 * (1 + groups) * rng.standard_t(3.0, P * ROWS)
    return X, y, groups, rng.integers(0, 4, P * ROWS).astype(float)


@functools.cache
def make_inner(storage="dense", loss="squared", *, intercept=False, weighted=False):
    X, y, groups, weight = _table()
    if loss == "logistic":
        y = np.where(y > 0.0, 1.0, -1.0)
    return stoic.GroupLoss(
        STORAGE[storage](X),
        y,
        groups,
        loss=LOSSES[loss],
        intercept=intercept,
        sample_weight=weight if weighted else None,
    )


def make_problem(storage="dense", loss="squared", outer="logsumexp", regularizer="zero", **options):
    return stoic.Problem(make_inner(storage, loss, **options), OUTERS[outer], REGULARIZERS[regularizer])


# --- solvers ---

STEP = 0.03


def _rosc(problem, m, n_steps, scale, *, fixed):
    solver = stoic.ROSC(
        step_size=scale * STEP,
        batch_size=m,
        n_steps=n_steps,
        radius=0.6 * math.sqrt(scale),
        reference_size=40,
        reference_mean=stoic.SmallestBall(0.4),
        levels=stoic.Calibrated(0.8, 0.05, factor=0.0, least=1.15),
    )
    if not fixed:
        return solver
    with np.errstate(all="ignore"):
        measured = solver.init(problem, problem.start(None), np.random.default_rng(5)).reference.levels
    return stoic.ROSC(**{**vars(solver), "levels": measured})


def _by_sample(solver):
    return stoic.ROSC(**{**vars(solver), "truncates": "samples"})


def _tracked(solver, weight):
    return stoic.TrackedROSC(**{**vars(solver), "truncates": "samples"}, weight=weight)


def _law(scale, power=0.6):
    return stoic.PowerLaw(scale, power, 20.0)


MAKERS = {
    "rosc": lambda problem, m, T, s: _rosc(problem, m, T, s, fixed=True),
    "rosc-calibrated": lambda problem, m, T, s: _rosc(problem, m, T, s, fixed=False),
    "rosc-samples": lambda problem, m, T, s: _by_sample(_rosc(problem, m, T, s, fixed=True)),
    "rosc-tracked": lambda problem, m, T, s: _tracked(_rosc(problem, m, T, s, fixed=False), 0.2),
    "rosc-latest": lambda problem, m, T, s: _tracked(_rosc(problem, m, T, s, fixed=False), 1.0),
    "mscg": lambda problem, m, T, s: stoic.MSCG(s * STEP, m, T),
    "clipped-sgd": lambda problem, m, T, s: stoic.ClippedSGD(s * STEP, m, T, clip=1.0),
    "scgd": lambda problem, m, T, s: stoic.SCGD(_law(s * STEP), _law(1.0, 0.5), m, T, "average"),
    "asc-pg": lambda problem, m, T, s: stoic.ASCPG(_law(s * STEP), _law(0.9, 0.5), m, T, "last"),
    "scsc": lambda problem, m, T, s: stoic.SCSC(_law(s * STEP), _law(0.5), m, T, "average"),
    "alexr": lambda problem, m, T, s: stoic.ALEXR(s * STEP, m, T, weight=0.3, extrapolation=0.7),
    "alexr-some": lambda problem, m, T, s: stoic.ALEXR(
        s * STEP, m, T, 0.3, 0.7, groups_per_step=3, importance=0.6
    ),
    "sox-some": lambda problem, m, T, s: stoic.SOX(s * STEP, m, T, weight=0.3, groups_per_step=2, importance=0.9),
    "sox-tracked": lambda problem, m, T, s: stoic.TrackedSOX(s * STEP, m, T, _law(0.9), groups_per_step=3),
    "civr": lambda problem, m, T, s: stoic.CIVR(s * STEP, m, T, anchor_size=30),
}
STAGES = ((0, 1.0, 2), (1, 0.5, 1), (0, 0.3, 1))  # what is added to m, factor of the step, share of the steps


def make_solver(name, problem, m, n_steps=300):
    """Return the solver of that name; with "restarted-" before it, in three stages that differ."""
    alone = name.removeprefix("restarted-")
    if alone == name:
        return MAKERS[alone](problem, m, n_steps, 1.0)
    stages = [MAKERS[alone](problem, m + more, n_steps * share // 4, scale) for more, scale, share in STAGES]
    return stoic.Restarted(stages)


SOLVERS = (*MAKERS, *(f"restarted-{name}" for name in MAKERS))


def boosted(solver, weights=(0.0, 0.3, 2.0), n_trials=3):
    """Return a proxBoost around a solver."""
    return ProxBoosted(tuple(ProxStage(weight, solver, n_trials) for weight in weights))


FACTORS = {
    "solver": SOLVERS,
    "storage": tuple(STORAGE),
    "loss": tuple(LOSSES),
    "outer": tuple(OUTERS),
    "regularizer": tuple(REGULARIZERS),
    "intercept": (False, True),
    "weighted": (False, True),
    "m": (1, 3),
}


def covering(factors):
    """Return choices of a value for each factor that hold every pair of values, by greedy search."""
    names = list(factors)
    left = {
        frozenset([(a, x), (b, y)])
        for a, b in itertools.combinations(names, 2)
        for x in factors[a]
        for y in factors[b]
    }
    ordered = sorted(left, key=sorted_pair)
    rows = []
    for pair in ordered:
        if pair not in left:
            continue
        choice = dict(sorted(pair))
        for name in sorted(set(names) - set(choice), key=lambda name: (-len(factors[name]), name)):
            start = len(rows) % len(factors[name])  # where none is better, all in turn
            options = factors[name][start:] + factors[name][:start]
            choice[name] = max(options, key=lambda value: _gain(choice, (name, value), left))
        left -= {frozenset(two) for two in itertools.combinations(choice.items(), 2)}
        rows.append({name: choice[name] for name in names})
    return rows


def sorted_pair(pair):
    return sorted((name, str(value)) for name, value in pair)


def _gain(choice, item, left):
    return sum(frozenset([item, other]) in left for other in choice.items())


def name_of(choice):
    words = [choice[name] for name in ("solver", "storage", "loss", "outer", "regularizer")]
    words += [name for name in ("intercept", "weighted") if choice[name]]
    return "-".join([*words, f"m{choice['m']}"])


def build(choice, n_steps=300):
    """Return the problem and the solver of a choice."""
    parts = {name: choice[name] for name in ("storage", "loss", "outer", "regularizer", "intercept", "weighted")}
    problem = make_problem(**parts)
    return problem, make_solver(choice["solver"], problem, choice["m"], n_steps)


# --- runs ---

OBSERVERS = {"size": lambda w: np.abs(w).max(), "first": lambda w: w[0], "last": lambda w: w[-1]}
COUNTS = ("samples", "evaluations", "stage", "truncated_y", "truncated_z")


def solve(problem, solver, engine, budget=10**7, **options):
    options = {"seed": 11, "observers": OBSERVERS, "evaluate_every": 1999} | options
    return stoic.minimize(problem, solver, budget=budget, engine=engine, **options)


def assert_close(left, right, tolerance=TOLERANCE):
    """Compare arrays relative to the largest entry; a NaN or an infinity is to be in the same place in both."""
    left, right = np.asarray(left), np.asarray(right)
    finite = np.isfinite(right)
    np.testing.assert_array_equal(left[~finite], right[~finite])
    scale = np.abs(right[finite]).max(initial=1e-300)
    np.testing.assert_allclose(left[finite], right[finite], rtol=0.0, atol=tolerance * scale)


def assert_agree(compiled, plain, tolerance=TOLERANCE):
    """Compare two results: counts exactly, points to rounding."""
    for name in ("status", "n_steps", "samples", "evaluations", "truncated_y", "truncated_z", "message"):
        assert getattr(compiled, name) == getattr(plain, name), name
    assert len(compiled.history) == len(plain.history)
    for ours, theirs in zip(compiled.history, plain.history, strict=True):
        assert {name: ours[name] for name in COUNTS} == {name: theirs[name] for name in COUNTS}
        scale = max(abs(theirs["size"]), 1e-300)
        for name in OBSERVERS:
            assert abs(ours[name] - theirs[name]) <= tolerance * scale, name
    assert_close(compiled.w, plain.w, tolerance)


def solved_alike(problem, solver, tolerance=TOLERANCE, **options):
    """Run both engines, check that they agree, and return the plain result."""
    plain = solve(problem, solver, "plain", **options)
    assert_agree(solve(problem, solver, "compiled", **options), plain, tolerance)
    return plain


class Run:
    """A run of states, by hand: either engine may take the next steps."""

    def __init__(self, problem, solver, *, seed=3, w0=None, budget=10**9):
        self.solver, self.meter = solver, Metered(problem.inner, budget)
        self.problem, self.rng = problem.with_inner(self.meter), np.random.default_rng(seed)
        self.engine = CompiledEngine(self.problem, self.meter)
        self.chunk = Chunk(solver.init(self.problem, problem.start(w0), self.rng))

    @property
    def state(self):
        """The state of the solver that takes the steps."""
        state = self.chunk.state
        while hasattr(state, "inner"):
            state = state.inner
        return state

    @property
    def counts(self):
        return self.chunk[1:], self.meter.samples, self.meter.evaluations

    def plain(self, steps=1):
        return self._go(run_chunk, steps)

    def compiled(self, steps=1):
        return self._go(self.engine.run_chunk, steps)

    def _go(self, run, steps):
        limits = Limits(10**12, steps, math.inf)
        chunk = run(self.solver, self.problem, self.meter, self.chunk, self.rng, limits)
        self.chunk = self.engine.settled(self.solver, chunk)
        return self


def assert_same_run(left, right, tolerance=TOLERANCE):
    """Compare two runs by hand: every part of the state, the counts, and the generator."""
    assert left.counts == right.counts
    assert left.rng.bit_generator.state == right.rng.bit_generator.state
    assert type(left.state) is type(right.state)
    for name in ("w", "average", "y", "z"):
        if getattr(right.state, name, None) is not None:
            assert_close(getattr(left.state, name), getattr(right.state, name), tolerance)
    assert left.state.t == right.state.t
