"""Kernels of two results as code: both are stored, by C and by CUDA thread by thread."""

from __future__ import annotations

from pathlib import Path

from bench.emulation.errors import drawn, exact_outputs, norm_error
from bench.emulation.runs import DTYPES, run_kernels
from relational_tensat.mugraph.fusion.chains import row_kernel
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.kernel_finder import find_kernels
from relational_tensat.mugraph.search.search_options import SearchOptions
from tests.mugraph.search.test_several_outputs import gate_and_up, sum_and_norm
from tests.with_compilers import needs_c

TOLERANCES = {"c": 1e-6, "cuda": 1e-3}


def _searched(program: MuGraph) -> MuGraph:
    best = find_kernels(program, SearchOptions(max_kernels=1, max_operators=3)).best
    assert best is not None
    return best.graph


@needs_c
def test_both_results_are_right(tmp_path: Path) -> None:
    rows, products = row_kernel(sum_and_norm(4, 24)), _searched(gate_and_up(16, 32, 32))
    for place, (graph, target) in enumerate(((rows, "c"), (rows, "cuda"), (products, "cuda"))):
        folder = tmp_path / str(place)
        folder.mkdir()
        inputs = drawn(graph, DTYPES[target])
        values, expected = (
            run_kernels(graph, inputs, target, folder),
            exact_outputs(graph, inputs),
        )
        assert len(expected) == 2
        for name, wanted in expected.items():
            assert norm_error(values[name], wanted) < TOLERANCES[target]
