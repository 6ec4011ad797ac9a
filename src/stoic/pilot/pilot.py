"""A pilot on the data: constants estimated from a few samples, and practical settings that follow from them."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from stoic.checks import check_count
from stoic.inners.metered import Metered
from stoic.pilot.fixed_sample import Pooled, Sample, length
from stoic.pilot.probes import (
    curvature,
    first_smoothness,
    is_large,
    jacobian_smoothness,
    noise,
    single_samples,
    spectrum,
)
from stoic.pilot.row_scale import UNKNOWN, RowScale, row_scale
from stoic.pilot.starting import Found, PilotRows, draw_pilot, find_start, pilot_cost
from stoic.problem import Problem
from stoic.protocols import Outer, Vector
from stoic.theory.plans import Constants

MOST_STAGES = 12
_LARGEST_BATCH = 64
_FEWEST_STEPS = 3000
_ENOUGH_DRAWS = 20
_HALVINGS = 40
_FIRST_STAGE, _MOST_ANYTIME, _COORDINATES_A_DRAW = 64, 8, 200.0
_ENOUGH = 5.0  # of μηT, for a stage that forgets its start


@dataclass(frozen=True)
class Pilot:
    """Estimates of the constants of a problem from a few samples, and the settings that follow.

    Attributes
    ----------
    constants : Constants
        Estimates of C_f, L_f, C_g, L_g, σ₀, σ₁ and μ.
    L : float
        Smoothness of f∘g, the largest curvature seen between w₀ and the pilot's own optimum.
    L_sample : float
        Expected smoothness of single samples: gradient steps on batches of m are stable up to about
        1/(L + L_sample/m).
    L_typical : float
        The same without the quarter of the samples that are the least smooth.
    gradient_norm : float
        ‖∇(f∘g)(w₀)‖.
    gradient_noise : float
        Median deviation of a single sample's gradient.
    distance : float
        From w₀ to the pilot's own optimum.
    eps0 : float
        The pilot's estimate of F(w₀) − F*.
    modulus : float
        Strong convexity that the regularizer gives for certain.
    budget, cost : int
        Samples left, and samples that a draw of size 1 costs.
    n_samples : int or None
        Data points of a finite sum.
    delta : float
        Total failure probability asked for.
    fewest_steps : int
        Steps to leave room for before batches grow.
    dimension : int
        Number of variables; 0 where that is not known.
    rows : RowScale
        Smoothness and noise of single rows, where groups can be drawn without the others.
    """

    constants: Constants
    L: float
    L_sample: float
    L_typical: float
    gradient_norm: float
    gradient_noise: float
    distance: float
    eps0: float
    modulus: float
    budget: int
    cost: int
    n_samples: int | None
    delta: float
    fewest_steps: int = _FEWEST_STEPS
    dimension: int = 0
    rows: RowScale = UNKNOWN

    @property
    def n_groups(self) -> int:
        """The number of groups that can be drawn without the others; 1 where there are none."""
        return self.rows.n_groups

    def of_groups(self, k: int) -> "Pilot":
        """Return the pilot of steps that draw k of the groups: a draw of size 1 is one row of each.

        `L_typical` is then that of one row, and `L_sample` twice what it is for chances that follow q at once:
        those that steps have are older, and allow twice the weight.
        """
        one, p = self.rows, self.n_groups
        single = one.single or p * self.L_sample
        return replace(
            self,
            L=one.mean or self.L,
            L_sample=2.0 * single / k,
            L_typical=single,
            gradient_noise=(one.noise or math.sqrt(p) * self.gradient_noise) / math.sqrt(k),
        )

    @property
    def mu(self) -> float:
        """The estimate of μ."""
        return self.constants.mu

    @property
    def condition(self) -> float:
        """The condition number κ = L/μ."""
        return max(1.0, self.L / self.mu)

    def draws(self) -> int:
        """Return how many draws of size 1 the budget allows."""
        return self.budget // self.cost

    def batch_size(self, *, per_step: int = 1) -> int:
        """Return the batch that leaves enough steps for the condition number."""
        steps = max(self.fewest_steps, math.ceil(40.0 * self.condition))
        return min(max(1, self.draws() // (per_step * steps)), _LARGEST_BATCH)

    def n_steps(self, batch_size: int, *, per_step: int = 1) -> int:
        """Return how many steps of `per_step` batches the budget allows, at least 1."""
        return max(1, self.draws() // (per_step * batch_size))

    def smoothness(self, batch_size: int) -> float:
        """Return the smoothness of gradients over batches of this size."""
        return self.L + self.L_sample / batch_size

    def step_size(self, batch_size: int) -> float:
        """Return 1/(2L), with the L of batches of this size."""
        return 0.5 / self.smoothness(batch_size)

    def averaging_step(self, batch_size: int, n_steps: int) -> float:
        r"""Return the constant step for an average of n iterates, at most 1/(2L).

        Of the steps 1/(2L), 1/(4L), … it is the shortest whose bound on the gap is within a tenth of the least,

        .. math:: \frac{\mathrm{distance}^2}{2 \eta n} \min\Bigl(1, \frac{1}{\mu \eta n}\Bigr)
                  + \sigma^2 \min\Bigl(\frac{\eta}{2}, \frac{d}{L n}\Bigr) :

        the way from the start, which an average forgets where μηn is large, and the noise, of which an average of
        many more than d draws keeps that of d draws, however long its steps. σ is the deviation of the gradient of
        a batch, and L is there the smoothness of single draws, near the trace of the Hessian. Where μ is tiny and
        d is large, the step falls with √n; where μ is not, with n; where d is small and μ tiny, it stays 1/(2L).
        """
        top, squared = self.step_size(batch_size), self.distance**2
        variance = self.gradient_noise**2 / batch_size
        if not (variance > 0.0 and squared > 0.0):
            return top
        steps = [top * 0.5**k for k in range(_HALVINGS)]
        settled = (
            self.dimension / (self.L_typical * n_steps) if self.dimension and self.L_typical > 0.0 else math.inf
        )
        bounds = [
            squared / (2.0 * step * n_steps) * min(1.0, 1.0 / (self.mu * step * n_steps))
            + variance * min(0.5 * step, settled)
            for step in steps
        ]
        return min(step for step, bound in zip(steps, bounds, strict=True) if bound <= 1.1 * min(bounds))

    def shortest(self, step_size: float) -> float:
        """Return the least length of the first of several stages: 50 steps, and 5/(μη)."""
        return max(50.0, _ENOUGH / (self.mu * step_size))

    def n_stages(self, n_steps: int, step_size: float) -> int:
        """Return how many stages of doubling length fit."""
        return min(max(1, math.floor(math.log2(n_steps / self.shortest(step_size) + 1.0))), MOST_STAGES)

    def anytime_stages(self, n_draws: int) -> int:
        """Return how many stages of doubling length fit, whatever μ is, the first of 64 draws or more; 8 at most.

        What such stages give half way does not depend on how many follow. A stage begins with a few passes over
        all coordinates, which the draws of the first one are to outweigh.
        """
        first = max(_FIRST_STAGE, self.dimension / _COORDINATES_A_DRAW)
        return min(max(1, math.floor(math.log2(n_draws / first + 1.0))), _MOST_ANYTIME)

    def wander(self, step_size: float, batch_size: int, n_steps: int) -> float:
        """Return how far noise takes the iterates of n steps from where they would be without it.

        It is that of a random walk, η·σ·√n, until curvature holds it, after about d/(2ηL) steps. σ is here C_f·σ₁,
        where that is more: it sees rare samples, which the median of single ones does not.
        """
        noise = max(self.gradient_noise, self.constants.C_f * self.constants.sigma1)
        held = (
            self.dimension / (2.0 * step_size * self.L_typical) if self.dimension and self.L_typical else math.inf
        )
        return step_size * noise * math.sqrt(min(float(n_steps), held) / batch_size)

    def reach(self, step_size: float, n_steps: int) -> float:
        """Return the radius of a ball around w₀ that should hold an optimum: √(2ε₀/μ), or twice `distance`.

        Where so many steps are too few for μ, the pilot saw too little as well, and there is no ball.
        """
        if self.mu * step_size * n_steps < _ENOUGH:
            return math.inf
        return max(2.0 * self.distance, math.sqrt(2.0 * self.eps0 / self.mu)) or math.inf

    @property
    def truncated(self) -> "Pilot":
        """With the smoothness of typical samples, for methods that truncate."""
        return replace(self, L_sample=self.L_typical)

    def within(self, budget: int) -> "Pilot":
        """Return the same pilot with another budget."""
        return replace(self, budget=budget)

    def anchored(self, weight: float) -> "Pilot":
        """Return the pilot of the problem with (weight/2)‖w − c‖² added."""
        return replace(self, constants=replace(self.constants, mu=self.mu + weight))


def run_pilot(problem: Problem, w0: Vector, rng: Generator, *, size: int, delta: float = 0.05) -> Pilot:
    """Draw `size` samples and learn the problem's scales from them.

    The samples are cut into five parts, and each is minimized by at most 40 proximal gradient steps. Of the
    five optima the one in the middle (the center of the smallest ball with half of them) gives the distance
    and the gap to cover, and a second point at which to measure curvature and noise: a wild sample spoils one
    part, not the pilot.
    """
    rows = draw_pilot(problem, rng, size)
    return measure_pilot(rows, find_start(rows, w0, moves=False), rng, delta=delta)


@np.errstate(all="ignore")
def measure_pilot(rows: PilotRows, found: Found, rng: Generator, *, delta: float) -> Pilot:
    """Learn the problem's scales from rows, at the start that was found and the optimum it is measured by."""
    parts, problem = rows.parts, rows.parts[0].problem
    w0, sample, w1 = found
    distance = length(w1 - w0)
    probe = 1e-3 * (distance or length(sample.gradient(w0)) / first_smoothness(sample, w0) or 1.0 + length(w0))
    many = _enough_draws(parts, sample)
    at_optimum = spectrum(many, w1, probe, rng)
    L = max(at_optimum.largest, *(curvature(many, point, probe, rng) for point in (w0, 0.5 * (w0 + w1))))
    L = L if 0.0 < L < math.inf else 1.0
    growth = problem.strong_convexity + max(0.0, at_optimum.smallest)
    spread = single_samples(sample, rows.singles, w0, w1)
    return Pilot(
        constants=_constants(parts, sample, (w0, w1), probe, rng, L=L, mu=max(_finite(growth, 0.0), 1e-6 * L)),
        L=L,
        L_sample=_finite(spread.smoothness, L),
        L_typical=_finite(spread.typical_smoothness, L),
        gradient_norm=_finite(length(sample.gradient(w0)), 0.0),
        gradient_noise=_finite(spread.noise, 0.0),
        distance=_finite(distance, 0.0),
        eps0=_finite(max(0.0, sample.objective(w0) - sample.objective(w1)), 0.0),
        modulus=problem.strong_convexity,
        budget=0,
        cost=problem.inner.cost(1),
        n_samples=problem.inner.n_samples,
        delta=delta,
        dimension=problem.dimension,
        rows=row_scale(parts, rows.singles, w0, w1),
    )


def _enough_draws(parts: list[Sample], sample: Sample) -> Sample:
    """Return the sample, with others of the parts pooled where it has few draws.

    The mean of few draws has curvatures of its own, which a non-linear f makes much of.
    """
    chosen, others = [sample], [part for part in parts if part is not sample]
    while others and sum(part.size for part in chosen) < _ENOUGH_DRAWS:
        chosen.append(others.pop(0))
    return sample if len(chosen) == 1 else Pooled(chosen)


def _constants(
    parts: list[Sample],
    sample: Sample,
    ends: tuple[Vector, Vector],
    probe: float,
    rng: Generator,
    *,
    L: float,
    mu: float,
) -> Constants:
    outer = sample.problem.outer
    seen = [noise(parts, point) for point in ends]
    few = [sample, *(part for part in parts if part is not sample)][: 1 if is_large(sample) else 3]
    L_g = max(float(np.median([jacobian_smoothness(part, point, probe, rng) for part in few])) for point in ends)
    return Constants(
        C_f=_declared(outer, "lipschitz", max(end.slope for end in seen)),
        L_f=_declared(outer, "smoothness", L),
        C_g=_finite(max(end.C_g for end in seen), 1.0),
        L_g=_finite(L_g, L),
        sigma0=_finite(max(end.sigma0 for end in seen), 0.0),
        sigma1=_finite(max(end.sigma1 for end in seen), 0.0),
        mu=mu,
    )


def _finite(value: float, otherwise: float) -> float:
    return value if math.isfinite(value) else otherwise


def _declared(outer: Outer, name: str, otherwise: float) -> float:
    """Return what the outer function declares, or `otherwise` where that is nothing finite."""
    return _finite(float(getattr(outer, name, math.inf)), _finite(otherwise, 1.0))


def estimate_constants(
    problem: Problem, w0: Vector | None = None, *, size: int = 1000, seed: int | Generator | None = None
) -> Constants:
    r"""Estimate C_f, L_f, C_g, L_g, σ₀, σ₁ and μ robustly from `size` samples (of each group).

    σ₀ and σ₁ are the median distance of block means to their robust mean, times the root of the block size;
    C_g² is ‖z̃‖² + σ₁²; L_g comes from power iteration on Jacobian differences; each is taken at w₀ and at the
    optimum of the samples drawn, whichever is larger. μ is the modulus of the regularizer plus the smallest
    curvature found at the latter. C_f and L_f are the outer function's own where it declares finite ones, else
    ‖∇f‖ at these points and the smoothness of f∘g. They are estimates of typical size, not bounds.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 3))
    >>> problem = stoic.Problem(stoic.GroupLoss(X, X @ np.ones(3)), stoic.LogSumExp(1.0))
    >>> constants = stoic.estimate_constants(problem, seed=0)
    >>> constants.C_f, constants.L_f, round(constants.L_g)
    (1.0, 0.5, 2)
    """
    size, start = check_count("size", size, low=3), problem.start(w0)
    meter = Metered(problem.inner, pilot_cost(size) * problem.inner.cost(1), start)
    with meter.trying():
        return run_pilot(
            problem.watched().with_inner(meter), start, np.random.default_rng(seed), size=size
        ).constants
