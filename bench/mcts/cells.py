"""What is run: a cell per model, profile and setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Main extractions: the paper's three, and ours, by moves on the graph of the subgraph before.
MAINS = ("moves", "greedy", "ocf", "greedy-dag", "ilp")

#: Cost profiles: the paper's A100, and a smaller GPU in the place of its P100.
COSTS = ("a100", "tensat_t4")


@dataclass(frozen=True, slots=True)
class Cell:
    """One run.

    Attributes:
        kind: ``initial`` (the original graph, extracted), ``tensat`` (saturation at rising k_multi) or
            ``mcts``.
        cost: a profile.
        main: what a subgraph in a rollout costs, one of ``MAINS``; empty but for ``mcts``.
        seed: of ``mcts``.
    """

    kind: str
    model: str
    cost: str
    main: str = ""
    seed: int = 0

    @property
    def name(self) -> str:
        """How files and messages call it."""
        parts = [self.kind, self.model, self.cost]
        if self.kind == "mcts":
            parts += [self.main, f"seed{self.seed}"]
        return "-".join(parts)


def cells_of(
    models: Sequence[str], costs: Sequence[str], mains: Sequence[str], seeds: int
) -> list[Cell]:
    """Return all cells in the order in which they are run: what is quick first, seed by seed."""
    cells = [
        Cell(kind, model, cost)
        for kind in ("initial", "tensat")
        for cost in costs
        for model in models
    ]
    for main in sorted(mains, key=MAINS.index):
        for seed in range(seeds):
            cells += [Cell("mcts", model, cost, main, seed) for cost in costs for model in models]
    return cells
