"""Kernels that load parts of inputs, as code: by C, by CUDA thread by thread, by Triton's interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from bench.emulation.errors import TOLERANCES, drawn, exact, norm_error
from bench.emulation.runs import DTYPES, run_kernels
from relational_tensat.mugraph.fusion.chains import row_kernel
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.mugraph_json import decoded, encoded
from relational_tensat.mugraph.graph.mugraph_text import mugraph_text
from relational_tensat.mugraph.graph.rewrites import core, with_windows
from relational_tensat.mugraph.kernel_finder import find_kernels
from relational_tensat.mugraph.kernels.emission import emit
from relational_tensat.mugraph.regions.node_programs import lowered
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.verify.verification import verify_mugraph
from tests.custom_ops.sized_graphs import convolved
from tests.mugraph.parts import joint_attention, rotary
from tests.with_compilers import needs_c
from tests.with_triton import skip_without_triton


@cache
def rows() -> MuGraph:
    model = rotary()
    program = lowered(model, model.nodes, model.name).program
    return with_windows(row_kernel(core(program)), program)


@cache
def slid() -> MuGraph:
    """A convolution of each channel, which no search proposes for a GPU."""
    model = convolved(2, 0, side=5, width=3, stride=2)
    program = lowered(model, model.nodes, model.name).program
    return with_windows(row_kernel(core(program)), program)


@cache
def products() -> MuGraph:
    model = joint_attention("split")
    program = lowered(model, model.nodes, model.name).program
    best = find_kernels(program, SearchOptions(max_kernels=1, max_operators=6)).best
    assert best is not None
    return best.graph


@pytest.mark.nightly
@needs_c
def test_parts_of_inputs_are_loaded_from_where_they_lie(tmp_path: Path) -> None:
    for place, (graph, target) in enumerate(
        [(rows(), "c"), (rows(), "cuda"), (products(), "cuda"), (slid(), "c"), (slid(), "cuda")]
    ):
        folder = tmp_path / str(place)
        folder.mkdir()
        inputs = drawn(graph, DTYPES[target])
        values = run_kernels(graph, inputs, target, folder)
        tolerance = TOLERANCES[DTYPES[target]]
        assert norm_error(values[graph.outputs[0]], exact(graph, inputs)) < tolerance


def test_triton_loads_them_from_where_they_lie() -> None:
    """In a process of its own: Triton decides when it is imported whether it is interpreted."""
    skip_without_triton()
    command = [sys.executable, "-m", "tests.mugraph.kernels.triton.interpreting_windows"]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    errors = json.loads(printed.stdout)
    assert len(errors) == 2 and max(errors) < TOLERANCES[DTYPES["triton"]]


def test_sixteen_bytes_are_copied_where_rows_of_a_part_begin_at_such() -> None:
    """Queries begin at a multiple of 8 elements; halves with zeros beside them are copied one by one."""
    (attention,), (turned,) = (emit(graph, "cuda") for graph in (products(), rows()))
    assert attention.source.count("begin_copy<16>(") == 3
    assert turned.source.count("begin_copy<16>(") == 3  # x, the sine and the cosine, whole
    assert "? from[" in turned.source and "? from[" not in attention.source


def test_parts_are_printed_and_kept() -> None:
    graph = rows()
    assert decoded(encoded(graph), "rows") == graph
    assert "(d = -8 + i, i = d=16, 0 unless 8 ≤ i < 16)" in mugraph_text(graph)
    assert "(q = -1 + i, i = 2 n + e, n=3 e=3, 0 unless 1 ≤ i < 6)" in mugraph_text(slid())


def split_rows() -> MuGraph:
    """Halves that change places, in blocks of a quarter of a row."""
    whole = rows()
    (kernel,) = whole.kernels
    (saver,) = kernel.block.savers
    width = saver.dims[-1].variable
    iterators = tuple(replace(it, imap=(*it.imap, width)) for it in kernel.block.iterators)
    block = replace(
        kernel.block,
        grid=(*kernel.block.grid, 4),
        iterators=iterators,
        savers=(replace(saver, omap=(*saver.omap, width)),),
    )
    return replace(whole, steps=(replace(kernel, block=block),))


@needs_c
def test_what_is_zero_is_known_in_blocks_of_parts_of_rows(tmp_path: Path) -> None:
    model = rotary()
    program, graph = lowered(model, model.nodes, model.name).program, split_rows()
    assert verify_mugraph(program, graph, 1).passed
    for target in ("c", "cuda"):
        folder = tmp_path / target
        folder.mkdir()
        inputs = drawn(graph, DTYPES[target])
        values = run_kernels(graph, inputs, target, folder)
        want = exact(graph, inputs)
        assert norm_error(values[graph.outputs[0]], want) < TOLERANCES[DTYPES[target]]
