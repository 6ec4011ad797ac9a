"""Models in files: what comes back, and what is refused."""

import pickle
import random

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import stoic
from stoic import GroupDROClassifier, GroupDRORegressor, load_model, save_model
from stoic.estimators.files import FORMAT, load_columns
from stoic.storage.archive import read_archive, write_archive

RNG = np.random.default_rng(0)
X, GROUPS = RNG.standard_normal((300, 3)), np.array(["a", "b", "c"])[np.arange(300) % 3]
Y = X @ [1.0, 2.0, 0.0] + RNG.standard_t(2.5, 300)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.stoic"


@pytest.fixture
def model():
    return GroupDRORegressor(temperature=2.0).fit(X, Y, groups=GROUPS)


def again(model, path):
    save_model(model, path)
    return load_model(path)


MODELS = {
    "huber": lambda: GroupDRORegressor().fit(X, Y, groups=GROUPS),
    "quantile l1": lambda: GroupDRORegressor("quantile", quantile=0.9, penalty="l1").fit(X, Y, groups=GROUPS),
    "average": lambda: GroupDRORegressor("squared", penalty="none", temperature=np.inf).fit(X, Y, groups=GROUPS),
    "elastic net": lambda: GroupDRORegressor("absolute", penalty="elasticnet").fit(X, Y, groups=GROUPS),
    "no intercept": lambda: GroupDRORegressor(fit_intercept=False).fit(X, Y, groups=GROUPS),
    "float32": lambda: GroupDRORegressor().fit(X.astype(np.float32), Y, groups=GROUPS),
    "CSR": lambda: GroupDRORegressor(standardize=True).fit(sp.csr_array(X), Y, groups=GROUPS),
    "numbers": lambda: GroupDRORegressor().fit(X, Y, groups=np.arange(300) % 4),
    "dates": lambda: GroupDRORegressor().fit(X, Y, groups=np.datetime64("2024-01-01") + np.arange(300) % 2),
    "mixed": lambda: GroupDRORegressor().fit(X, Y, groups=np.array([1, "x"] * 150, dtype=object)),
    "two classes": lambda: GroupDROClassifier().fit(X, Y > 0, groups=GROUPS),
    "three classes": lambda: GroupDROClassifier().fit(X, np.digitize(Y, [-1, 1]), groups=GROUPS),
    "words": lambda: GroupDROClassifier().fit(X, np.where(Y > 0, "yes", "no"), groups=GROUPS),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_was_saved_comes_back_bit_for_bit(name, path):
    model = MODELS[name]()
    other = again(model, path)
    np.testing.assert_array_equal(other.predict(X), model.predict(X), strict=True)
    np.testing.assert_array_equal(other.groups_, model.groups_, strict=True)
    for fact in ("coef_", "intercept_", "group_weights_", "group_losses_"):
        np.testing.assert_array_equal(getattr(other, fact), getattr(model, fact))
    assert other.get_params() == model.get_params()
    assert (other.n_iter_, other.converged_) == (model.n_iter_, model.converged_)
    assert other.history_ == [{k: v for k, v in record.items() if k != "seconds"} for record in model.history_]
    if hasattr(model, "classes_"):
        np.testing.assert_array_equal(other.classes_, model.classes_, strict=True)
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))


def test_it_goes_on_learning_where_it_was(model, path):
    other = again(model, path)
    for one in (model, other):
        one.partial_fit(X[:100], Y[:100] + 1.0, groups=["d"] * 100)
    np.testing.assert_array_equal(other.coef_, model.coef_)
    assert other.groups_.tolist() == ["a", "b", "c", "d"]


def test_names_of_columns_and_what_made_them_are_kept(path):
    frame = pd.DataFrame(X, columns=["x", "y", "z"])
    model = GroupDRORegressor().fit(frame, Y, groups=GROUPS)
    save_model(model, path, columns={"x": "number"})
    assert load_model(path).feature_names_in_.tolist() == ["x", "y", "z"]
    assert load_columns(path) == {"x": "number"}
    with pytest.raises(ValueError, match="feature names"):
        load_model(path).predict(frame.rename(columns={"x": "w"}))


@pytest.mark.slow
def test_a_thousand_flipped_bytes_are_a_thousand_clear_errors(model, path):
    save_model(model, path)
    whole, rng = path.read_bytes(), random.Random(0)
    for _ in range(1000):
        place = rng.randrange(len(whole))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << rng.randrange(8))]) + whole[place + 1 :])
        with pytest.raises(stoic.DamagedFile, match="make it again, or use a copy"):
            load_model(path)


@pytest.mark.parametrize("length", [0, 1, 100, -1, -100])
def test_a_file_that_is_cut_short_is_refused(model, path, length):
    save_model(model, path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(stoic.DamagedFile, match="was not written by stoic, or is cut off"):
        load_model(path)


def test_a_pickle_is_refused_and_not_run(model, path):
    path.write_bytes(pickle.dumps(model))
    with pytest.raises(stoic.DamagedFile, match="was not written by stoic"):
        load_model(path)


def test_a_file_from_the_future_says_what_to_do(model, path):
    save_model(model, path)
    arrays, meta = read_archive(path)
    write_archive(path, arrays, meta | {"format": FORMAT + 1, "stoic": "9.0"})
    with pytest.raises(stoic.DamagedFile, match=r"written by stoic 9.0 in format 2, .* install a newer stoic"):
        load_model(path)


def test_other_archives_and_half_models_are_refused(model, path):
    write_archive(path, {"w": np.ones(2)}, {"alpha": 1.0})
    with pytest.raises(stoic.DamagedFile, match="holds no model"):
        load_model(path)
    save_model(model, path)
    arrays, meta = read_archive(path)
    write_archive(path, arrays, {name: value for name, value in meta.items() if name != "loss"})
    with pytest.raises(stoic.DamagedFile, match="loss is missing; write it again"):
        load_model(path)


def test_what_cannot_be_saved_is_refused_and_nothing_is_written(model, path):
    with pytest.raises(stoic.InvalidParameter, match="is not one of GroupDRORegressor"):
        save_model(object(), path)
    model.method = stoic.Newton()
    with pytest.raises(stoic.InvalidParameter, match="only methods with a name"):
        save_model(model, path)
    assert not path.exists()
