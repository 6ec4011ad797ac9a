"""Encodings: new rows become a matrix in the same way, and what does not fit is refused by name and row."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from stoic.datasets.columns import Column
from stoic.datasets.encoding import Code, Encoding
from stoic.datasets.readings import Numbers
from stoic.errors import InvalidProblem


def columns(**values):
    return [Column(Path("data.csv"), name, pa.chunked_array([pa.array(one)])) for name, one in values.items()]


FITTED = columns(rooms=[2, 3, 4], town=["Ulm", "Bonn", "Ulm"], new=[True, False, True])


def test_new_rows_are_encoded_as_the_first_ones_were():
    encoding = Encoding.of(FITTED)
    assert encoding.names == ("rooms", "town=Bonn", "town=Ulm", "new")
    fresh = columns(new=[False], town=["Bonn"], rooms=[7])  # in another order
    assert encoding.apply(fresh).tolist() == [[7.0, 1.0, 0.0, 0.0]]


def test_an_encoding_survives_json():
    encoding = Encoding.of(FITTED, imputes=True)
    assert Encoding.from_json(json.loads(json.dumps(encoding.as_json()))) == encoding


def test_missing_values_are_filled_in_as_at_the_fit():
    encoding = Encoding.of(columns(x=[1.0, None, 3.0, np.nan, 5.0], t=["b", "a", None, "b", "b"]), imputes=True)
    assert encoding.names == ("x", "x is missing", "t=a", "t=b", "t is missing")
    filled = encoding.apply(columns(x=[None, 2.0], t=[None, "a"]))
    assert filled.tolist() == [[3.0, 1.0, 0.0, 1.0, 1.0], [2.0, 0.0, 1.0, 0.0, 0.0]]


def test_a_column_that_lacked_nothing_at_the_fit_is_filled_in_without_a_word():
    encoding = Encoding.of(columns(x=[1.0, 2.0, 9.0], t=["b", "a", "b"]), imputes=True)
    assert encoding.names == ("x", "t=a", "t=b")
    assert encoding.apply(columns(x=[None], t=[None])).tolist() == [[2.0, 0.0, 1.0]]


def test_ties_among_categories_are_filled_with_the_first_in_order():
    encoding = Encoding.of(columns(t=["b", "a", None]), imputes=True)
    assert encoding.apply(columns(t=[None])).tolist() == [[1.0, 0.0, 1.0]]


def test_missing_values_are_refused_unless_told_otherwise():
    with pytest.raises(InvalidProblem, match=r"column 'rooms', row 2: has no value there"):
        Encoding.of(FITTED).apply(columns(rooms=[1, None], town=["Ulm", "Ulm"], new=[True, True]))


def test_infinite_values_are_never_filled_in():
    with pytest.raises(InvalidProblem, match=r"column 'x', row 2 \('inf'\): is inf"):
        Encoding.of(columns(x=[1.0, 2.0]), imputes=True).apply(columns(x=[1.0, np.inf]))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"rooms": [1], "town": ["Ulm"]}, r"data.csv lacks the column: 'new'"),
        ({"rooms": [1]}, r"lacks the column: 'town' and 1 more"),
        (
            {"rooms": [1], "town": ["Ulm"], "new": [True], "year": [2024]},
            r"has a column that the model was not fitted with: 'year'",
        ),
        (
            {"rooms": [1, 2], "town": ["Ulm", "Köln"], "new": [True, True]},
            r"column 'town', row 2 \('Köln'\): is none of the categories .* \('Bonn', 'Ulm'\)",
        ),
        ({"rooms": ["many"], "town": ["Ulm"], "new": [True]}, r"column 'rooms' holds string, but numbers are"),
    ],
)
def test_columns_and_categories_that_do_not_fit_are_refused_by_name(rows, message):
    with pytest.raises(InvalidProblem, match=message):
        Encoding.of(FITTED).apply(columns(**rows))


def test_a_column_without_any_value_is_refused():
    with pytest.raises(InvalidProblem, match="column 'x' has no value in any row; remove it"):
        Encoding.of(columns(x=pa.nulls(3, pa.float64())), imputes=True)


def test_a_matrix_is_sparse_only_where_that_saves_much_memory(monkeypatch):
    names = [f"c{i:02}" for i in range(60)]
    rows = columns(t=names, x=np.arange(60.0))
    dense = Encoding.of(rows).apply(rows)
    assert isinstance(dense, np.ndarray)
    monkeypatch.setattr("stoic.datasets.encoding._LARGE", 1_000)
    X = Encoding.of(rows).apply(rows)
    assert sparse.issparse(X)
    assert X.indices.dtype == np.int32
    assert X.has_sorted_indices
    assert X.nnz == np.count_nonzero(dense)
    np.testing.assert_array_equal(X.toarray(), dense)
    full = columns(x=np.arange(1.0, 99.0), t=["a", "b"] * 49)
    assert isinstance(Encoding.of(full).apply(full), np.ndarray)  # as large as dense


def test_text_is_read_as_at_the_fit():
    encoding = Encoding((Code("x", reading=Numbers("comma")), Code("t", ("03", "x"))))
    assert encoding.apply(columns(x=["1.234,5"], t=["03"])).tolist() == [[1234.5, 1.0, 0.0]]
    with pytest.raises(InvalidProblem, match=r"column 'x', row 2 \('1.5'\): is no number"):
        encoding.apply(columns(x=["1", "1.5"], t=["x", "x"]))
