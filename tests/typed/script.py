"""A user's script, for mypy: every public name has its type. `make types` checks it with the sources."""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import stoic

X = np.random.default_rng(0).standard_normal((100, 2))
y: NDArray[np.float64] = X @ np.array([1.0, 2.0])

problem = stoic.Problem(stoic.GroupLoss(X, y, loss="huber"), stoic.LogSumExp(0.5), stoic.L2(1e-3))
assert_type(problem, stoic.Problem)
result = stoic.minimize(problem, "rrosc", budget=10_000, seed=0)
assert_type(result, stoic.Result)
assert_type(result.status, stoic.Status)
assert_type(result.certificate, stoic.Certificate)
assert_type(result.certificate.bound, float)
assert_type(stoic.certify(problem, result.w), stoic.Certificate)
assert_type(stoic.MSCG(step_size=0.1, batch_size=4), stoic.MSCG)
model = stoic.GroupDRORegressor().fit(X, y)
assert_type(model, stoic.GroupDRORegressor)

stoic.Huber(threshold="wide")  # type: ignore[arg-type]
stoic.minimize(problem, budget="large")  # type: ignore[arg-type]
