from __future__ import annotations

import numpy as np
import pytest

from relational_tensat.egraph.node_hashes import distinct


@pytest.mark.parametrize("values", [[], [3], [2, 1, 2, -5, 1], [7, 7, 7]])
def test_distinct_values_are_those_of_numpy(values: list[int]) -> None:
    array = np.array(values, np.int64)
    found = distinct(array)
    assert found.tolist() == np.unique(array).tolist()
    assert found.dtype == array.dtype
