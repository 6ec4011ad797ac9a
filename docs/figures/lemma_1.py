"""Draw Lemma 1: robust means against the plain mean, on a law with rare spikes and under corruption."""

import math
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import binom

from stoic.means import Mean, MedianOfMeans, SmallestBall

BLUE, ORANGE, GREEN, GRAY = "#0072B2", "#D55E00", "#009E73", "#555555"  # Okabe and Ito
DELTA = 1e-3


def draw_spike_law(axes):
    """Exact probabilities for X = 1 with probability q = 2δ/n, else 0; errors in units of σ/√n."""
    k, block_size = MedianOfMeans(DELTA).blocks, 100
    n = k * block_size
    q = 2 * DELTA / n
    unit = math.sqrt(q * (1 - q) / n)
    errors = np.geomspace(1e-2, 100, 4000)
    # The plain mean errs by more than t iff there are more than n (q + t) spikes, or none while q > t.
    plain = binom.sf(np.floor(n * (q + errors * unit)), n, q) + (q > errors * unit) * binom.pmf(0, n, q)
    # The median of means is zero unless half of the blocks hold a spike.
    half_hit = binom.sf(math.ceil(k / 2) - 1, k, 1 - (1 - q) ** block_size)
    ours = np.where(q > errors * unit, 1.0, half_hit)
    bound = 2 * math.sqrt(k)

    axes.loglog(errors, plain, color=ORANGE, lw=2)
    axes.loglog(errors, np.maximum(ours, 1e-12), color=BLUE, lw=2)
    axes.axhline(DELTA, color=GRAY, lw=1, ls=":")
    axes.axvline(bound, color=GRAY, lw=1.2, ls="--")
    axes.fill_between([bound, errors[-1]], DELTA, 3, color=GRAY, alpha=0.12, lw=0)
    axes.text(0.4, 2.8e-3, "plain mean", color=ORANGE)
    axes.text(0.06, 1.5e-5, "median of means", color=BLUE)
    axes.text(0.4, 8e-4, f"δ = {DELTA:g}", color=GRAY, va="top")
    axes.text(bound / 1.15, 1.5e-6, "bound of Lemma 1", color=GRAY, rotation=90, ha="right", va="bottom")
    axes.text(math.sqrt(bound * errors[-1]), 0.2, "at most δ\nallowed", color=GRAY, ha="center")
    axes.set(xlim=(errors[0], errors[-1]), ylim=(1e-6, 2))
    axes.set(xlabel="error t, in units of σ / √n", ylabel="probability of an error above t")
    axes.set_title("A rare spike breaks the plain mean")


def quantiles_under_corruption(estimator, dimension, constant, repetitions=400, block_size=20):
    """Return shares of blocks that are 10⁴ σ off, and 90 % quantiles of error / bound, ours and plain."""
    rng, k = np.random.default_rng(0), estimator.blocks
    sigma = math.sqrt(dimension * 2.5 / 0.5)
    bound = math.sqrt(constant / block_size) * sigma
    blocks = rng.standard_t(2.5, (repetitions, k, block_size, dimension)).mean(axis=2)
    counts = np.arange(math.ceil(k / 2) + 1)
    quantiles = np.empty((2, len(counts)))
    for count in counts:
        blocks[:, :count] = 1e4 * sigma / math.sqrt(dimension)
        for row, combine in zip(quantiles, [estimator.combine, Mean().combine], strict=True):
            row[count] = np.quantile([np.linalg.norm(combine(part)) / bound for part in blocks], 0.9)
    return 100 * counts / k, *quantiles


def draw_corruption(axes):
    shares, median, plain = quantiles_under_corruption(MedianOfMeans(0.1), 1, 4.0)
    axes.semilogy(shares, plain, color=ORANGE, lw=2, marker="o", ms=4)
    axes.semilogy(shares, median, color=BLUE, lw=2, marker="s", ms=4)
    shares, ball, _ = quantiles_under_corruption(SmallestBall(0.1), 5, 27.0)
    axes.semilogy(shares, ball, color=GREEN, lw=2, marker="^", ms=4)
    axes.axhline(1, color=GRAY, lw=1.2, ls="--")
    axes.text(15, 1e3, "plain mean", color=ORANGE)
    axes.text(3, 0.43, "median of means, scalars", color=BLUE)
    axes.text(3, 0.065, "smallest ball, vectors in R⁵", color=GREEN, va="top")
    axes.text(44, 1.25, "bound of Lemma 1", color=GRAY, ha="right")
    axes.set(xlim=(-1, 54), ylim=(0.02, 1e5))
    axes.set(xlabel="corrupted blocks, %", ylabel="error / bound, 90 % quantile")
    axes.set_title("Almost half of the blocks may be corrupt")


def main():
    plt.rcParams.update({"font.size": 9.5, "axes.spines.top": False, "axes.spines.right": False})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
    draw_spike_law(left)
    draw_corruption(right)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=130)


if __name__ == "__main__":
    main()
