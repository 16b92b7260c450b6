"""What a search found, with sizes: what verification chooses from, and what is kept for later."""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.mugraph.search.kernel_search import LevelCounts, SearchResult
from relational_tensat.mugraph.sizing.choosing_sizes import Sized, sized
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors


@dataclass(frozen=True, slots=True)
class Candidates:
    """μGraphs with sizes, and how large the search for them was.

    Attributes:
        graphs: cheapest first; of candidates that were kept from before, only the first ones.
        fitting: how many fit shared memory.
        routes: ways of computing the program that were found.
        levels, abstract_e_nodes, abstract_e_classes, is_complete: see ``SearchResult``.
        is_kept: whether they are from a search before.
    """

    graphs: tuple[Sized, ...]
    fitting: int
    routes: int
    levels: tuple[LevelCounts, ...]
    abstract_e_nodes: int
    abstract_e_classes: int
    is_complete: bool
    is_kept: bool = False


def candidates_of(result: SearchResult, device: Multiprocessors | None = None) -> Candidates:
    """Return the graphs of all routes at the sizes that are best on a device, by default an A100."""
    graphs = sorted(
        (made for route in result.routes for made in sized(route, device)),
        key=lambda made: made.cost_us,
    )
    return Candidates(
        tuple(graphs),
        len(graphs),
        len(result.routes),
        result.levels,
        result.abstract_e_nodes,
        result.abstract_e_classes,
        result.is_complete,
    )
