"""Laws with a closed-form optimum: what they claim of themselves, and that no row is drawn twice."""

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from scipy.special import logsumexp
from scipy.stats import kurtosis

import stoic
from stoic.studies.confidence import laws
from stoic.studies.confidence.laws import PLACES, UNIT_NOISES, GroupLaw, InOrder

LAWS = [
    GroupLaw(),
    GroupLaw(d=3),
    GroupLaw(temperature=5.0, radii=(1.0, 1.0, 1.0, 1.0)),
    GroupLaw(radii=(0.5, 0.6, 0.7), deviations=(1.0, 0.9, 0.8), d=4),
    GroupLaw(temperature=1.0, radii=(0.4, 0.6, 0.9, 1.0), deviations=(0.8, 1.3, 0.8, 1.0)),
    GroupLaw(radii=(0.5, 0.5, 0.7, 0.9, 1.0), deviations=(1.0,) * 5),
]


@pytest.mark.parametrize("law", LAWS)
def test_an_independent_solver_finds_the_same_optimum(law):
    def objective(w):
        risks = np.array([(w - model) @ (w - model) for model in law.models]) + np.square(law.deviations)
        return law.temperature * logsumexp(risks / law.temperature, b=1.0 / law.p)

    found = scipy_minimize(objective, np.zeros(law.d), method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(found.x, law.optimum, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(law.models - law.optimum, axis=1), law.radii, rtol=1e-12)
    assert law.gap(law.optimum) == pytest.approx(0.0, abs=1e-14)
    w = law.optimum + 0.3
    assert law.gap(w) == pytest.approx(objective(w) - objective(law.optimum), rel=1e-9)


@pytest.mark.parametrize("name", UNIT_NOISES)
def test_noises_have_mean_0_and_variance_1(name):
    """By the quantiles' own integral: the heaviest tail converges too slowly in a sample's second moment."""
    from scipy import stats

    laws = {
        "gaussian": stats.norm(),
        "t5": stats.t(5, scale=1 / stats.t(5).std()),
        "t4.5": stats.t(4.5, scale=1 / stats.t(4.5).std()),
        "t2.5": stats.t(2.5, scale=1 / stats.t(2.5).std()),
        "pareto2.5": stats.pareto(
            2.5, loc=-stats.pareto(2.5).mean() / stats.pareto(2.5).std(), scale=1 / stats.pareto(2.5).std()
        ),
        "lognormal": stats.lognorm(
            1.0, loc=-stats.lognorm(1.0).mean() / stats.lognorm(1.0).std(), scale=1 / stats.lognorm(1.0).std()
        ),
    }
    assert laws[name].mean() == pytest.approx(0.0, abs=1e-12)
    assert laws[name].var() == pytest.approx(1.0)
    drawn = UNIT_NOISES[name]((20_000,), np.random.default_rng(0))
    assert stats.kstest(drawn, laws[name].cdf).pvalue > 1e-3


@pytest.mark.parametrize("where", PLACES)
def test_the_noise_is_where_it_should_be(where):
    law = GroupLaw("lognormal", where)
    X, y = law.draw(5000, np.random.default_rng(1))
    noise = y.reshape(-1, law.p) - np.einsum("npd,pd->np", X.reshape(-1, law.p, law.d), law.models)
    assert (kurtosis(X, axis=None) > 5.0) == (where != "labels")
    assert (kurtosis(noise, axis=None) > 5.0) == (where != "features")


def test_rows_are_of_the_group_that_they_are_drawn_for():
    law = GroupLaw()
    problem = law.problem(2000, np.random.default_rng(2))
    batch = problem.inner.draw(2000, np.random.default_rng(0))
    assert (problem.inner.grouped_rows.codes[batch.rows] == np.arange(law.p)[:, None]).all()
    w = law.optimum
    np.testing.assert_allclose(problem.inner.value(w, batch)[0], law.risks(w), rtol=0.15)


def in_order(n=6):
    return GroupLaw().problem(n, np.random.default_rng(0)).inner.grouped_rows


def test_every_row_is_handed_out_once():
    rows, rng = in_order(), np.random.default_rng(0)
    assert isinstance(rows, InOrder)
    first = rows.draw(2, rng)
    mark = rows.mark(rng)
    rest = rows.batches((2, 1, 4, 2), rng)
    assert sorted([*first.flat, *rest.flat]) == list(range(24))
    with pytest.raises(stoic.InvalidParameter, match="7 rows of a group that has 6"):
        rows.draw(1, rng)
    rows.rewind(mark, rng)
    one, two = rows.draw(2, rng), rows.draw(2, rng)
    np.testing.assert_array_equal(rest, [[one], [two]])


@pytest.mark.parametrize("method", ["rrosc-tracked", "rrosc-growing", "rrosc", "asc-pg", "rcivr", "mscg", "scsc"])
def test_both_engines_take_the_same_fresh_rows(method):
    law, answers = GroupLaw("t2.5", "both"), []
    for engine in ("plain", "compiled"):
        rng = np.random.default_rng(3)
        result = stoic.minimize(law.problem(1500, rng), method, budget=6000, seed=rng, engine=engine)
        answers.append(result.w)
    np.testing.assert_allclose(*answers, rtol=1e-8)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"noise": "cauchy"}, "noise='cauchy' is not one of gaussian, t4.5"),
        ({"where": "weights"}, "where='weights' is not one of labels, features, both"),
        ({"d": 2}, "d=2"),
        ({"radii": (0.1, 0.1, 0.1, 5.0)}, "no models have them"),
        ({"radii": (1.0, 1.0), "deviations": (1.0, 1.0), "d": 2}, "p >= 3"),
        ({"deviations": (1.0,)}, "1 deviations for 4 radii"),
        ({"temperature": 0.0}, "temperature=0.0"),
    ],
)
def test_a_law_that_cannot_be_is_refused(settings, message):
    with pytest.raises(stoic.InvalidParameter, match=message):
        GroupLaw(**settings)


def measured_limit(law, n, draws, rng):
    """Return tr(H⁻¹Σ)/(2n) with Σ from samples, one row of each group in a draw."""
    X, y = law.draw(draws, rng)
    X, y = X.reshape(draws, law.p, law.d), y.reshape(draws, law.p)
    residuals = np.einsum("npd,d->np", X, law.optimum) - y
    outer, risks = stoic.LogSumExp(law.temperature), law.risks(law.optimum)
    q, bent = outer.gradient(risks), outer.hessian(risks)
    z = 2.0 * (law.optimum - law.models)
    psi = np.einsum("npd,np,p->nd", X, 2.0 * residuals, q) + (residuals**2 - risks) @ bent @ z
    return np.trace(np.linalg.solve(2.0 * np.eye(law.d) + z.T @ bent @ z, np.cov(psi.T))) / (2.0 * n)


@pytest.mark.parametrize("place", ["labels", "features", "both"])
def test_the_limit_is_that_of_the_covariance_of_samples(place, monkeypatch):
    noises = {"signs": lambda shape, rng: rng.choice([-1.0, 1.0], shape)}  # the least fourth moment there is
    monkeypatch.setitem(laws.UNIT_NOISES, "signs", noises["signs"])
    monkeypatch.setitem(laws.FOURTH_MOMENTS, "signs", 1.0)
    for noise in ("gaussian", "signs"):
        law = laws.GroupLaw(noise, place, deviations=(1.0, 0.9, 1.1, 1.0), temperature=2.0)
        found = measured_limit(law, 100, 200_000, np.random.default_rng(0))
        assert law.limit(100) == pytest.approx(found, rel=0.02)  # deviations of some 0.3 %


def test_there_is_no_limit_without_a_fourth_moment():
    assert laws.GroupLaw("t2.5", "labels").limit(100) == np.inf
    assert laws.GroupLaw("pareto2.5", "features").limit(100) == np.inf
    assert laws.GroupLaw("t2.5", "features").limit(100) == np.inf
    assert laws.GroupLaw("t5", "both").limit(100) < np.inf
