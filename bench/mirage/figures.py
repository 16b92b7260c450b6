"""Figures 4, 8, 9 and 10 of the paper: the μGraphs that this search finds for the same programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.common.table import table_row
from bench.mirage.cases import cases
from relational_tensat.mugraph.graph.dims import count, size_of, variables
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph
from relational_tensat.mugraph.graph.mugraph_text import mugraph_text
from relational_tensat.mugraph.graph.validity import block_tensors, kernel_tensors
from relational_tensat.mugraph.kernel_finder import first_verified
from relational_tensat.mugraph.search.kernel_search import search_kernels
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.sizes.splits import sized


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the paper.

    Attributes:
        number: the paper's.
        case: the benchmark.
        kernels: how many the figure's μGraph has.
        title: what it shows.
    """

    number: int
    case: str
    kernels: int
    title: str


FIGURES = (
    Figure(
        4, "GQA incremental 1", 2, "group-query attention in two kernels, keys split among blocks"
    ),
    Figure(8, "GQA speculative 1", 2, "blocks split heads, queries and keys at once"),
    Figure(9, "LoRA 1", 1, "low-rank adaptation in one kernel"),
    Figure(10, "MLP 1", 2, "an adapter in two kernels, the first product in partial sums"),
)


def drawn(figure: Figure) -> str:
    """Return a figure as Markdown."""
    graph, cost_us = _cheapest(figure)
    text = (
        f"## Figure {figure.number}: {figure.title}\n\n{figure.case}, modelled {cost_us:.1f} µs.\n"
    )
    text += f"\n```text\n{mugraph_text(graph)}\n```\n"
    loads = "".join(f"{table_row(row)}\n" for row in _loads(graph))
    header = "| kernel | loads | a block | all blocks, by the tensor |\n| --- | --- | --- | --- |\n"
    return f"{text}\n{header}{loads}"


def _cheapest(figure: Figure) -> tuple[MuGraph, float]:
    """Return the cheapest μGraph of so many kernels that passes verification, and its modelled time."""
    (case,) = (case for case in cases() if case.name == figure.case)
    program = case.build()
    options = SearchOptions(max_operators=case.max_operators, max_kernels=figure.kernels)
    routes = search_kernels(program, options).routes
    found = [made for route in routes for made in sized(route, libraries=True)]
    wanted = [made for made in found if len(made.graph.kernels) == figure.kernels]
    wanted.sort(key=lambda made: made.cost_us)
    best = first_verified(program, wanted, options).best
    assert best is not None, f"no μGraph of {figure.kernels} kernels for {case.name}"
    return best.graph, best.cost_us


def _loads(graph: MuGraph) -> Iterator[tuple[str, str, str, str]]:
    """Yield what a block loads of each tensor in all iterations, and how often all blocks load it."""
    device = kernel_tensors(graph)
    for kernel in graph.kernels:
        tiles = block_tensors(kernel, device).dims
        for it in kernel.block.iterators:
            iterations = kernel.block.loop if it.fmap else 1
            part = ", ".join(
                f"{name}: {size_of(tiles[it.output], name) * (iterations if name == it.fmap else 1):,}"
                for name in variables(tiles[it.output])
            )
            loaded = count(tiles[it.output]) * iterations * _blocks(kernel)
            yield kernel.name, it.tensor, part, f"{loaded / count(device[it.tensor]):g} times"


def _blocks(kernel: Kernel) -> int:
    blocks = 1
    for extent in kernel.block.grid:
        blocks *= extent
    return blocks
