"""What is run: a cell for each model, search, limit and seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.search.search_run import Limits

#: Searches that draw something at random.
RANDOM = ("auto", "focus", "focus-mcts", "mcts")

#: Searches that are run at the first k_multi only: it means nothing to them, or is one of each subgraph.
WITHOUT_K = ("focus", "focus-mcts", "mcts", "backtracking")


@dataclass(frozen=True, slots=True)
class Cell:
    """One run.

    Attributes:
        model: see ``models.model_of``.
        search: one of ``SEARCHES``.
        limits: k_multi, e-nodes, CPU seconds.
        seed: of what is drawn at random.
    """

    model: str
    search: str
    limits: Limits
    seed: int = 0

    @property
    def name(self) -> str:
        """How files and messages call it."""
        limits = self.limits
        parts = [Path(self.model).stem, self.search, f"k{limits.k_multi}", f"{limits.node_limit}"]
        parts += [] if limits.cpu_s is None else [f"{limits.cpu_s:g}s"]
        return "-".join([*parts, f"seed{self.seed}"])


def cells_of(
    models: Sequence[str], searches: Sequence[str], limits: Sequence[Limits], seeds: int
) -> list[Cell]:
    """Return all cells: seed by seed, and limit by limit, as given.

    So what is there when time is over is of all models and searches; and cells that one run may be the
    result of (``bench.search.common_steps``) come far enough after each other to be run side by side.
    """
    return [
        Cell(model, search, limit, seed)
        for seed in range(seeds)
        for limit in limits
        for model in models
        for search in searches
        if seed == 0 or search in RANDOM
        if limit in _own(search, limits)
    ]


def _own(search: str, limits: Sequence[Limits]) -> Iterator[Limits]:
    """Yield the limits that differ to a search."""
    first_k, most_nodes = limits[0].k_multi, max(limit.node_limit for limit in limits)
    for limit in limits:
        if search in WITHOUT_K and limit.k_multi != first_k:
            continue
        if search == "backtracking" and limit.node_limit != most_nodes:
            continue
        yield limit
