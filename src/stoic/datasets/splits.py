"""What a data set with a test part is returned as."""

from typing import Any, NamedTuple, TypeAlias

from stoic.protocols import Vector

Matrix: TypeAlias = Any  # a dense array or scipy.sparse.csr_array


class Split(NamedTuple):
    """Rows and labels to learn from, and others to test on; both matrices have the same columns."""

    X_train: Matrix
    y_train: Vector
    X_test: Matrix
    y_test: Vector
