"""C of tiles the last of which is smaller: right, and nothing outside of a tensor is touched."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.emulation.errors import TOLERANCES, drawn, exact, norm_error
from bench.emulation.watched_c import WatchedC
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernels.emit_c import CKernel, emit_c
from relational_tensat.tensor import Array
from tests.mugraph.kernels.partial import PARTIAL_CHAINS
from tests.mugraph.kernels.random_regions import random_region, turned, with_name
from tests.with_compilers import needs_c, needs_cpp

pytestmark = [needs_c, needs_cpp]


def _given(graph: MuGraph) -> list[Array]:
    """Return negative operands, below the zeros that a lacking element might be, and a result."""
    (kernel,) = graph.kernels
    inputs = {name: -np.abs(value) - 1 for name, value in drawn(graph, "float32").items()}
    result = np.full([d.size for d in kernel.block.savers[0].dims], np.nan, np.float32)
    return [*(inputs[name] for name in kernel.operands), result]


def _is_right(graph: MuGraph, given: list[Array], result: Array) -> bool:
    inputs = dict(zip(graph.kernels[0].operands, given, strict=False))
    return norm_error(result, exact(graph, inputs)) <= TOLERANCES["float32"]


def _with_whole_tiles(kernel: CKernel, end: str) -> CKernel:
    """Return a kernel one of whose variables has as many elements in the last tile as in others."""
    name = f"{kernel.name}_{end}"
    source = re.sub(rf"{end} = fewer\((\d+), .*\);", rf"{end} = \1;", kernel.source)
    assert source != kernel.source
    return replace(
        kernel, name=name, source=source.replace(f"void {kernel.name}(", f"void {name}(")
    )


def test_kernels_compute_what_their_graphs_mean_and_no_more(tmp_path: Path) -> None:
    kernels = [emit_c(graph.kernels[0], graph.inputs) for graph in PARTIAL_CHAINS]
    library = WatchedC(kernels, tmp_path)
    for graph, kernel in zip(PARTIAL_CHAINS, kernels, strict=True):
        given = _given(graph)
        assert _is_right(graph, given, library.run(kernel.name, given)[-1]), kernel.name


def test_whole_tiles_where_the_last_is_smaller_are_seen(tmp_path: Path) -> None:
    mutants = []
    for graph in PARTIAL_CHAINS:
        kernel = emit_c(graph.kernels[0], graph.inputs)
        ends = sorted(set(re.findall(r"const long (end_\w+)", kernel.source)))
        mutants += [(_with_whole_tiles(kernel, end), _given(graph)) for end in ends]
    assert len(mutants) == 10
    library = WatchedC([mutant for mutant, _ in mutants], tmp_path)
    for mutant, given in mutants:
        with pytest.raises(AssertionError, match="bytes are touched outside of tensors"):
            library.run(mutant.name, given)


def test_tiles_of_a_processor_end_where_their_tensors_do(tmp_path: Path) -> None:
    """Regions that are cut where nothing divides them: with whole tiles, memory outside is touched."""
    kernels, given = [], []
    for seed in (0, 3, 20):
        region = with_name(random_region(np.random.default_rng(seed)), f"region_{seed}")
        (step,), dims = region.graph.kernels, kernel_tensors(region.graph)
        lying = region.lying
        operands = [turned(region.inputs[n], dims[n], lying[n]) for n in step.operands]
        results = [np.full([d.size for d in lying[n]], np.nan, np.float32) for n in step.outputs]
        kernels.append(emit_c(step, region.graph.inputs, lying))
        given.append([*operands, *results])
    ends = [re.findall(r"const long (end_\w+)", kernel.source)[0] for kernel in kernels]
    mutants = [_with_whole_tiles(kernel, end) for kernel, end in zip(kernels, ends, strict=True)]
    library = WatchedC([*kernels, *mutants], tmp_path)
    for kernel, mutant, arrays in zip(kernels, mutants, given, strict=True):
        library.run(kernel.name, arrays)
        with pytest.raises(AssertionError, match="bytes are touched outside of tensors"):
            library.run(mutant.name, arrays)
