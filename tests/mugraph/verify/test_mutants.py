"""Mutants of right μGraphs: a thousand are refused, and what passes is right in floating point, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from relational_tensat.base.errors import VerificationError
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.programs import program
from relational_tensat.mugraph.search.routes import build
from relational_tensat.mugraph.verify.random_tests import first_difference, relative_error
from relational_tensat.mugraph.verify.stability import stabilized
from tests.mugraph.kernels.mugraphs import split_attention
from tests.mugraph.mugraphs import flash_attention
from tests.mugraph.mutants import mutants
from tests.mugraph.searches import searched
from tests.tiers import nightly

_SIZE = 4
#: Inputs of this size have logits of some hundreds.
_LARGE = 10.0
#: Mutants of each graph: the first are the suite's, all are the nightly tier's.
_PER_GRAPH = pytest.mark.parametrize("count", [40, nightly(340)])


def right_graphs() -> Iterator[tuple[MuGraph, MuGraph]]:
    """Yield programs with graphs of one and two kernels, with and without loops."""
    attention = program("attention", **dict.fromkeys("hqdke", _SIZE))
    yield attention, flash_attention(**dict.fromkeys("hqdke", _SIZE))
    primes = {"h": 2, "q": 3, "d": 2, "k": 7, "e": 2}  # whose last tile is smaller
    yield program("attention", **primes), flash_attention(**primes)
    for name, names in (("mlp", "mkrn"), ("rmsnorm_linear", "mkn"), ("lora", "mknr")):
        small = program(name, **dict.fromkeys(names, _SIZE))
        route = searched(name, 2).routes[-1]
        found = replace(list(route.graphs())[-1], program=small)
        splits = [((2,) * len(k.grid), 2 if k.loop else 1) for k in found.kernels]
        yield small, build(found, splits)


def _one_head(**sizes: int) -> MuGraph:
    """Return attention of one head, which the dims do not name."""
    graph = program("attention", h=1, **sizes)
    inputs = {name: dims[1:] for name, dims in graph.inputs.items()}
    return replace(graph, inputs=inputs)


def passes(original: MuGraph, mutant: MuGraph) -> bool:
    try:
        return first_difference(original, mutant, seed=5) is None
    except VerificationError:  # other sizes, or a quotient by 0
        return False


@_PER_GRAPH
def test_no_wrong_graph_passes(count: int) -> None:
    refused = 0
    for original, graph in right_graphs():
        assert passes(original, graph)
        for mutant in mutants(graph, count, seed=1):
            if passes(original, mutant):
                assert relative_error(original, mutant, seed=3) < 1e-9, mutant
            else:
                refused += 1
    assert refused >= 3 * count


@_PER_GRAPH
def test_no_mutant_with_maxima_is_wrong_and_finite(count: int) -> None:
    """What passes in the fields is right whatever its maxima are; if they are too small, it overflows."""
    refused = unstable = 0
    sizes = {"q": 16, "d": 16, "k": 96, "e": 8}
    small = dict.fromkeys("hqdke", _SIZE)
    for graph, original in (
        (stabilized(flash_attention(**small)), program("attention", **small)),
        (split_attention(), _one_head(**sizes)),
    ):
        assert passes(original, graph)
        reference = stabilized(original)
        for mutant in mutants(graph, count, seed=2):
            if not passes(original, mutant):
                refused += 1
                continue
            assert relative_error(original, mutant, seed=3) < 1e-9, mutant
            error = relative_error(reference, mutant, 3, "float16", _LARGE)
            assert error < 0.05 or error == float("inf"), mutant
            unstable += error == float("inf")
    assert refused > count and unstable > 0
