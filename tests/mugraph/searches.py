"""Searches that several tests look at: each is made once."""

from __future__ import annotations

from functools import cache

from relational_tensat.mugraph.programs import program
from relational_tensat.mugraph.search.kernel_search import SearchResult, search_kernels
from relational_tensat.mugraph.search.routes import FoundGraph
from relational_tensat.mugraph.search.search_options import SearchOptions


@cache
def searched(name: str, max_kernels: int = 1) -> SearchResult:
    """Return the search of a program at the benchmark's sizes."""
    return search_kernels(program(name), SearchOptions(max_kernels=max_kernels))


def graphs(result: SearchResult) -> list[FoundGraph]:
    """Return every graph that was found."""
    return [found for route in result.routes for found in route.graphs()]
