"""What both engines do: a graph, the rules that it is explored by, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.models import TENSAT_MODELS
from bench.scale.families import FAMILIES
from relational_tensat.rules.library import taso_rules
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph

#: Iterations with multi-pattern rules, and at most of all: those of TENSAT's runs.
K_MULTI, ITERATIONS = 1, 15


@dataclass(frozen=True, slots=True)
class Task:
    """A work of some size.

    Attributes:
        work: ``chain``, sums commuted and regrouped until nothing is new; ``taso``, a model of TENSAT's by
            TASO's rules.
        size: of a chain, about how many e-nodes its e-graph has; of ``taso``, the model's name.
    """

    work: str
    size: int | str

    @property
    def iterations(self) -> int:
        """At most so many; a chain is saturated before."""
        return 1000 if self.work == "chain" else ITERATIONS

    def graph(self) -> Graph:
        """Return the graph that is explored."""
        if self.work == "chain":
            return FAMILIES["chain"].build(int(self.size))
        return TENSAT_MODELS[str(self.size)]()

    @property
    def rules(self) -> Callable[[], Sequence[Rule]]:
        """What reads the rules that it is explored by."""
        return FAMILIES["chain"].rules if self.work == "chain" else taso_rules

    def __str__(self) -> str:
        size = f"{self.size:,}" if isinstance(self.size, int) else self.size
        return f"{self.work}, {size}"
