"""How should the estimate of g be tracked? Weights of the moving average, and the corrected form of SCSC.

Medians of the gap F(w) − F* over runs of `rrosc-tracked` on a law with a known optimum. First the weight of a
sample in y is a multiple of the default 40/T. Then y is corrected by the same sample at two points,

    y ← (1 − b) (y + ŷ(w_t) − ŷ(w_{t−1})) + b ŷ(w_t),

which costs two evaluations a sample; this form has no kernel, so that both run on the plain engine.
"""

import argparse
from dataclasses import dataclass, replace
from typing import NamedTuple

import joblib
import numpy as np

import stoic
from stoic.solvers.base import Info, running_mean
from stoic.studies.confidence.laws import GroupLaw
from stoic.truncation import truncated_mean

MULTIPLES = (1 / 16, 1 / 4, 1 / 2, 1, 2, 4, 16)
UNIT_NOISES = ("gaussian", "t2.5")


class CorrectedState(NamedTuple):
    """A state of ROSC, and the point before."""

    w: np.ndarray
    average: np.ndarray
    t: int
    y: np.ndarray
    reference: object
    previous: np.ndarray


@dataclass(frozen=True)
class Corrected(stoic.TrackedROSC):
    """TrackedROSC with the corrected form; a truncated sample says nothing about the drift of g."""

    def started(self, reference):
        return CorrectedState(*super().started(reference), reference.w)

    def step(self, problem, state, rng):
        inner, reference, levels = problem.inner, state.reference, state.reference.levels
        batch, distance = inner.draw(self.batch_size, rng), np.linalg.norm(state.w - state.reference.w)
        here, n_cut = truncated_mean(inner.value(state.w, batch), reference.y, levels.radius_y(distance))
        z, _ = truncated_mean(inner.jacobian(state.w, batch), reference.z, levels.radius_z(distance))
        ahead = state.w - self.step_size * (z.T @ problem.outer.gradient(state.y))
        w = stoic.prox_in_ball(problem.regularizer, ahead, self.step_size, reference.w, self.radius)
        drift = 0.0 if n_cut else here - inner.value(state.previous, batch)[0]
        y = (1.0 - self.weight) * (state.y + drift) + self.weight * here
        average = running_mean(state.average, w, state.t + 1)
        return CorrectedState(w, average, state.t + 1, y, reference, state.w), Info()


@dataclass(frozen=True)
class Changed(stoic.RROSCTracked):
    """RROSCTracked with a multiple of the weights, and on request corrected."""

    multiple: float = 1.0
    is_corrected: bool = False

    def tuned(self, pilot):
        solver = super().tuned(pilot)
        return replace(solver, stages=tuple(self._changed(stage) for stage in solver.stages))

    def _changed(self, stage):
        changed = replace(stage, weight=min(1.0, self.multiple * stage.weight))
        return Corrected(**vars(changed)) if self.is_corrected else changed


def gap(law, n, method, seed, engine):
    rng = np.random.default_rng([seed, 7])
    result = stoic.minimize(law.problem(n, rng), method, budget=n * law.p, seed=rng, engine=engine)
    return law.gap(result.w)


def row(pool, n, runs, method, engine):
    cells = []
    for noise in UNIT_NOISES:
        gaps = pool(joblib.delayed(gap)(GroupLaw(noise), n, method, seed, engine) for seed in range(runs))
        cells.append(f"{np.median(gaps):.2e} / {np.quantile(gaps, 0.95):.2e}")
    return "   ".join(cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    print(f"median / 0.95-quantile of the gap, {' and '.join(UNIT_NOISES)} labels; multiple of the weight 40/T")
    with joblib.Parallel(n_jobs=given.jobs) as pool:
        for n in (10_000, 100_000):
            print(f"{n} samples a group, {given.runs} runs")
            for multiple in MULTIPLES:
                cells = row(pool, n, given.runs, Changed(multiple=multiple), "compiled")
                print(f"  {multiple:>6.3g}   {cells}", flush=True)
        few = max(1, given.runs // 2)
        print(f"plain engine, 5000 samples a group, {few} runs")
        for multiple in (0.25, 1, 4):
            for is_corrected in (False, True):
                method = Changed(multiple=multiple, is_corrected=is_corrected)
                name = f"{multiple:g}, corrected" if is_corrected else f"{multiple:g}"
                print(f"  {name:<16}{row(pool, 5000, few, method, 'plain')}", flush=True)


if __name__ == "__main__":
    main()
