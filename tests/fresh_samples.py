"""Certificates by fresh samples with few words, and streams for them."""

import numpy as np

from stoic.certificate.fresh import fresh_certificate, samples_needed


def certificate(problem, w, *, delta=0.05, samples=None, modulus=None, seed=0):
    samples = samples_needed(problem, delta) if samples is None else samples
    rng = np.random.default_rng(seed)
    return fresh_certificate(problem, w, delta=delta, samples=samples, modulus=modulus, rng=rng)


class Stream:
    """g(w; ξ) = A w + b + s·ξ, with ξ in the values, or g(w; ξ) = ⟨ξ, w⟩ with ξ in the slopes; ξ has mean 0."""

    n_samples, n_unpenalized = None, 0

    def __init__(self, draw, A, values=0.0, slopes=0.0):
        self._draw, self.A, self.values, self.slopes = draw, np.atleast_2d(A), values, slopes
        self.shape = self.A.shape

    def draw(self, size, rng):
        return [self._draw((size, n), rng).mean(axis=0) for n in self.shape]

    def cost(self, size):
        return size

    def value(self, w, batch, blocks=1):
        return (self.jacobian(w, batch) @ w) + self.values * batch[0]

    def jacobian(self, w, batch, blocks=1):
        return (self.A + self.slopes * batch[1])[None]

    def vjp(self, w, batch, q):
        return q @ self.jacobian(w, batch)[0]
