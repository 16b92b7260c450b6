"""Triton of tiles the last of which is smaller, interpreted: right, and each mask is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from bench.emulation.errors import TOLERANCES
from relational_tensat.mugraph.kernels.emit_triton import emit_triton
from relational_tensat.mugraph.kernels.triton_tensors import fitted
from tests.mugraph.kernels.mugraphs import attention
from tests.mugraph.kernels.partial import PARTIAL
from tests.with_triton import skip_without_triton


def test_what_a_last_tile_lacks_is_masked_with_what_does_not_count() -> None:
    graph = attention(q=31, k=61)
    source = emit_triton(graph.kernels[0], graph.inputs).source
    assert "end_q = tl.minimum(16, 31 - (tl.program_id(1) * 16))" in source
    assert "end_k = tl.minimum(16, 61 - (iteration * 16))" in source
    here = "tl.where((i_k[None, :] < end_k)"
    assert f'tl.max({here}, s, float("-inf")), axis=1)' in source
    assert f"tl.sum({here}, p, 0.0), axis=1)" in source
    assert f"tl.dot({here}, p, 0.0).to(tl.float16), v, acc=a)" in source
    assert source.count("mask=(") == 4


def test_a_loop_that_takes_shorter_steps_leaves_none_without_an_element() -> None:
    """Of 4,097 keys in 33 steps of 125; 66 of 63 would be one too many, so these are not taken."""
    for k, loop in ((4097, 5), (4097, 33), (4099, 9)):
        graph = attention(1, 64, 64, k, 64, (1, 1), loop)
        kernel = fitted(graph.kernels[0], graph.inputs)
        assert kernel.block.loop % loop == 0
        emit_triton(graph.kernels[0], graph.inputs)


@pytest.mark.nightly
def test_kernels_compute_what_their_graphs_mean_and_no_more() -> None:
    skip_without_triton()
    command = [sys.executable, "-m", "tests.mugraph.kernels.triton.interpreting_partial_tiles"]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    errors, without_masks = json.loads(printed.stdout)
    assert len(errors) > 2 * len(PARTIAL[1:])
    for dtype, name, error in errors:
        assert error <= TOLERANCES[dtype], name
    assert len(without_masks) == 8  # three loads, a maximum, a sum, a product's operand, a store
    assert without_masks[0] <= TOLERANCES["float16"]
    assert all(not error <= 0.01 for error in without_masks[1:])
