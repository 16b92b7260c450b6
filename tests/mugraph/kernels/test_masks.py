"""Masks of -inf as code: parts of rows, and whole rows, of which nothing is left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.emulation.errors import TOLERANCES, drawn, norm_error
from bench.emulation.runs import DTYPES, emulated, run_kernels
from relational_tensat.tensor import Array
from tests.mugraph.kernels.inputs import numbered
from tests.mugraph.kernels.mugraphs import pooled
from tests.mugraph.masks import BY_BOOLS, MASKED, expected, with_mask
from tests.with_compilers import needs_c

pytestmark = needs_c


def test_attention_is_right_and_0_where_nothing_is_left(tmp_path: Path) -> None:
    graphs = numbered((*MASKED, *BY_BOOLS))
    library = emulated(graphs, tmp_path)
    for graph in graphs:
        inputs = with_mask(drawn(graph))
        values = run_kernels(graph, inputs, "cuda", tmp_path, library)[graph.outputs[0]]
        assert norm_error(values, expected(inputs)) < TOLERANCES["float16"], graph.name
        assert not values[..., 1::4, :].any(), graph.name


def weighted(scores: Array, values: Array) -> Array:
    """Return means of values by their scores' exponentials, NaN where nothing is left."""
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores.astype(np.float64))
        return np.asarray((weights * values).sum(axis=1) / weights.sum(axis=1))


@pytest.mark.parametrize("target", ["c", "cuda"])
def test_a_softmax_without_a_guard_is_nan_where_its_model_is(target: str, tmp_path: Path) -> None:
    """The first part of a row may be masked: the running maximum stays finite, and what follows counts."""
    graph = pooled()
    inputs = with_mask(drawn(graph, DTYPES[target]), "S")
    wanted = weighted(inputs["S"], inputs["V"])
    computed = run_kernels(graph, inputs, target, tmp_path)["Y"]
    assert np.isnan(wanted[1]) and np.isfinite(wanted[[0, 2, 3]]).all()
    np.testing.assert_allclose(computed, wanted, rtol=2 * TOLERANCES[DTYPES[target]], atol=1e-3)
