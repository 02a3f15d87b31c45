from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from fleetplan.perfmodel.optables.unique import rising_codes, unique_rows

WIDE = st.integers(min_value=0, max_value=2**40)
NARROW = st.integers(min_value=0, max_value=2)


@given(st.lists(st.tuples(WIDE, NARROW, WIDE, NARROW), max_size=40))
@examples(100, 25, 100)
def test_codes_give_the_columns_back_and_no_row_is_there_twice(rows: list[tuple[int, ...]]) -> None:
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4)
    dims = {name: columns[:, i] for i, name in enumerate("abcd")}
    found = unique_rows(dims)
    for name, column in dims.items():
        assert (found.dims[name][found.codes] == column).all()
    assert found.dims["a"].size == len(set(rows))


def test_rows_keep_the_order_of_their_first_appearance() -> None:
    found = unique_rows({"a": np.array([5, 3, 5, 4]), "b": np.array([1, 1, 1, 1])})
    assert found.dims["a"].tolist() == [5, 3, 4]
    assert found.codes.tolist() == [0, 1, 0, 2]


@given(
    st.integers(min_value=1, max_value=3), st.lists(st.tuples(NARROW, NARROW), min_size=1, max_size=40), WIDE
)
@examples(100, 25, 100)
def test_rows_are_numbered_alike_however_far_apart_their_values_are(
    copies: int, rows: list[tuple[int, int]], apart: int
) -> None:
    # Many rows of few values are numbered by a table, few rows of values far apart are hashed, and long
    # columns are searched for runs.
    columns = np.array(rows * (5000 if copies == 3 else copies), dtype=np.int64)
    near = unique_rows({"a": columns[:, 0], "b": columns[:, 1]})
    far = unique_rows({"a": columns[:, 0] * (apart + 1), "b": columns[:, 1]})
    assert near.codes.tolist() == far.codes.tolist()
    assert near.dims["b"].tolist() == far.dims["b"].tolist()
    assert list(dict.fromkeys(map(tuple, columns.tolist()))) == list(
        zip(near.dims["a"].tolist(), near.dims["b"].tolist(), strict=True)
    )


@given(st.lists(WIDE, min_size=1, max_size=40), st.sampled_from([1, 300]))
@examples(100, 25, 100)
def test_values_are_numbered_in_rising_order_as_numpy_does(values: list[int], copies: int) -> None:
    # Long columns are searched for runs.
    column = np.repeat(np.array(values, dtype=np.int64), copies)
    distinct, codes = rising_codes(column)
    expected, inverse = np.unique(column, return_inverse=True)
    assert distinct.tolist() == expected.tolist()
    assert codes.tolist() == inverse.tolist()
