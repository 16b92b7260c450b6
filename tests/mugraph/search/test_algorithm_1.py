"""The joins miss no kernel that plain enumeration of prefixes finds, on programs small enough for it."""

from __future__ import annotations

import pytest

from relational_tensat.mugraph.graph.arithmetic import Labelled
from relational_tensat.mugraph.graph.dims import variables
from relational_tensat.mugraph.graph.evaluation import evaluate, tile_of
from relational_tensat.mugraph.graph.residues import Residues
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.programs import program
from relational_tensat.mugraph.search.block_terms import fingerprint, iterator_of
from relational_tensat.mugraph.search.kernel_search import search_kernels
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.search.structure import configurations, structure_of
from tests.mugraph.search.algorithm_1 import Block


@pytest.mark.parametrize(("name", "operators"), [("mlp", 4), ("rmsnorm_linear", 4)])
def test_the_joins_find_what_algorithm_1_finds(name: str, operators: int) -> None:
    original = program(name)
    structure = structure_of(original)
    small, arithmetic = structure.program, Residues(0)
    values = {
        key: Labelled(variables(dims), arithmetic.draw([d.size for d in dims], place))
        for place, (key, dims) in enumerate(small.inputs.items())
    }
    (output,) = small.outputs
    dims = kernel_tensors(small)[output]
    raw = evaluate(small, {key: value.data for key, value in values.items()}, arithmetic)[output]
    whole = Labelled(variables(dims), raw)

    options = SearchOptions(max_operators=operators, max_kernels=1)
    (route,) = search_kernels(original, options).routes
    found = {(kernel.grid, kernel.loop) for kernel in route.alternatives[0]}

    plain = set()
    inputs = list(small.inputs.values())
    for configuration in configurations(inputs, structure.known):
        if any(variable.is_summed for variable in configuration.grid):
            continue  # no kernel alone can sum over blocks
        grid = [variable.factor for variable in configuration.grid]
        cut = tile_of(iterator_of("", "", dims, configuration), whole, grid, 1)
        block = Block(small, configuration, values, len(inputs) + operators)
        if block.finds(fingerprint(cut)):
            loop = configuration.loop.name if configuration.loop else ""
            plain.add((tuple(v.name for v in configuration.grid), loop))
    assert plain
    assert plain <= found
