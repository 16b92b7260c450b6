"""What a search found, with sizes: what verification chooses from, and what is kept for later."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.search.kernel_search import LevelCounts, SearchResult
from relational_tensat.mugraph.sizing.choosing_sizes import Sized
from relational_tensat.mugraph.sizing.modelled import graph_us
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors, a100


@dataclass(frozen=True, slots=True)
class Candidates:
    """μGraphs with sizes, and how large the search for them was.

    Attributes:
        graphs: cheapest first; of candidates that were kept from before, only the first ones.
        fitting: how many fit shared memory.
        routes: ways of computing the program that were found.
        levels, abstract_e_nodes, abstract_e_classes, is_complete: see ``SearchResult``.
        complete_to_us: of what takes longer, some may have been left out.
        is_kept: whether they are from a search before.
    """

    graphs: tuple[Sized, ...]
    fitting: int
    routes: int
    levels: tuple[LevelCounts, ...]
    abstract_e_nodes: int
    abstract_e_classes: int
    is_complete: bool
    complete_to_us: float = math.inf
    is_kept: bool = False


def candidates_of(
    result: SearchResult, graphs: Sequence[Sized], complete_to_us: float = math.inf
) -> Candidates:
    """Return the graphs of a search's result, cheapest first, with what is known of the search."""
    return Candidates(
        tuple(graphs),
        len(graphs),
        len(result.routes),
        result.levels,
        result.abstract_e_nodes,
        result.abstract_e_classes,
        result.is_complete,
        complete_to_us,
    )


def with_more(
    candidates: Candidates, graphs: Sequence[MuGraph], device: Multiprocessors | None = None
) -> Candidates:
    """Return candidates with further graphs of the same program, but for those that do not fit."""
    more = [Sized(graph, graph_us(graph, device or a100())) for graph in graphs]
    fitting = [made for made in more if math.isfinite(made.cost_us)]
    together = sorted([*candidates.graphs, *fitting], key=lambda made: made.cost_us)
    return replace(candidates, graphs=tuple(together), fitting=candidates.fitting + len(fitting))
