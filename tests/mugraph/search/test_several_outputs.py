"""Programs of two outputs: kernels that store both, as many as single searches have in common."""

from __future__ import annotations

from dataclasses import replace

import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.programs import ProgramBuilder
from relational_tensat.mugraph.search.kernel_search import search_kernels
from relational_tensat.mugraph.search.routes import FoundGraph, build
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.verify.random_tests import first_difference
from tests.mugraph.searches import graphs


def gate_and_up(m: int = 12, k: int = 12, n: int = 12) -> MuGraph:
    """relu(X·A) and X·B."""
    b = ProgramBuilder("gate_and_up", X=f"m={m} k={k}", A=f"k={k} n={n}", B=f"k={k} n={n}")
    return b.build(b.apply("relu", b.matmul("X", "A", "k")), b.matmul("X", "B", "k"))


def sum_and_norm(m: int = 12, n: int = 12) -> MuGraph:
    """X + Y, and it by its root mean square."""
    b = ProgramBuilder("sum_and_norm", X=f"m={m} n={n}", Y=f"m={m} n={n}")
    total = b.apply("add", "X", "Y")
    return b.build(total, b.normalized(total, "n"))


def _only(program: MuGraph, output: str) -> MuGraph:
    """Return what one output needs."""
    needed, steps = {output}, []
    for step in reversed(program.steps):
        if step.outputs[0] in needed:
            needed.update(step.operands)
            steps.append(step)
    inputs = {name: dims for name, dims in program.inputs.items() if name in needed}
    return replace(program, inputs=inputs, steps=tuple(steps[::-1]), outputs=(output,))


def _found(program: MuGraph) -> list[FoundGraph]:
    options = SearchOptions(max_kernels=1, max_operators=5)
    result = search_kernels(program, options)
    assert result.is_complete
    return graphs(result)


def _configurations(found: list[FoundGraph]) -> set[tuple[tuple[str, ...], str]]:
    return {(kernel.grid, kernel.loop) for one in found for kernel in one.kernels}


def _small(found: FoundGraph) -> MuGraph:
    splits = [((2,) * len(kernel.grid), 3 if kernel.loop else 1) for kernel in found.kernels]
    return build(found, splits)


@pytest.mark.parametrize("program", [gate_and_up(), sum_and_norm()], ids=lambda p: str(p.name))
def test_a_kernel_stores_both_wherever_one_could_store_either(program: MuGraph) -> None:
    alone = [_configurations(_found(_only(program, output))) for output in program.outputs]
    both = _found(program)
    assert set() != set.intersection(*alone) <= _configurations(both)
    for grid, loop in _configurations(
        both
    ):  # one's loop may be over what the other has no sum over
        assert all(grid in {other for other, _ in each} for each in alone)
        assert not loop or any(loop in {other for _, other in each} for each in alone)
    for graph in map(_small, both):
        assert first_difference(program, graph, seed=5) is None
        swapped = replace(graph, outputs=graph.outputs[::-1])
        assert first_difference(program, swapped, seed=5) is not None


def test_two_kernels_end_in_both_too() -> None:
    program = gate_and_up()
    found = {}
    for disable in ((), ("reachability",)):
        options = SearchOptions(max_kernels=2, max_operators=3, disable=disable)
        two = [g for g in graphs(search_kernels(program, options)) if len(g.kernels) == 2]
        assert two
        found[disable] = {(g.kernels[0].grid, g.kernels[1].grid) for g in two}
        for graph in map(_small, two[:20]):
            assert first_difference(program, graph, seed=5) is None
    assert found[()] <= found[("reachability",)]


def test_an_output_that_nothing_computes_is_refused() -> None:
    program = replace(gate_and_up(), outputs=("X",))
    with pytest.raises(InputError, match="expected computed ones"):
        search_kernels(program)
