"""Graphs as a target runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

from relational_tensat.cost import Configuration, CostSource
from relational_tensat.cost.configurations import graph_configurations
from relational_tensat.cost.source import CostAnswer
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.extract import ExtractionOptions
from relational_tensat.extract.cost_table import forget_costs
from relational_tensat.extract.few_measurements import cheapest_graph
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph

#: Each rule of a target makes a graph smaller: their e-graphs are small. What is in blocks goes from one
#: residual block of a network to the next, two iterations each.
_LIMITS = ExplorationOptions(iterations=200, node_limit=1_000_000, time_limit_s=None)
_EXTRACTION = ExtractionOptions(time_limit_s=10.0)
#: More than any graph costs.
_NEVER_US = 1e9


@contextmanager
def ways_to_run(graph: Graph, rules: Sequence[Rule]) -> Iterator[Callable[[CostSource], Graph]]:
    """Give what returns the kernels that a target runs a graph by, by costs of kernels.

    Of all that its rules find these are the cheapest. It folds constants only: where a kernel takes
    constants, it computes none of these instead, unless the graph does so already.

    Args:
        graph: of plain operators.
        rules: the target's.
    """
    with closing(EGraph.create(graph)) as egraph:
        explore(egraph, rules, _LIMITS)

        def as_run(cost: CostSource) -> Graph:
            forget_costs(egraph)
            return cheapest_graph(egraph, _OfConstants(cost, graph), _EXTRACTION)

        yield as_run


class _OfConstants(CostSource):
    """Costs by which a target computes no operand that its kernels take as constants."""

    tells_computed = True

    def __init__(self, cost: CostSource, graph: Graph) -> None:
        super().__init__(cost.name)
        self.is_instant = cost.is_instant  # type: ignore[misc]  # as is what it asks
        self.is_lazy = cost.is_lazy  # type: ignore[misc]
        self._cost = cost
        self._own = frozenset(graph_configurations(graph))

    def is_free(self, configuration: Configuration) -> bool:
        """Whether the costs say so."""
        return self._cost.is_free(configuration)

    def find(self, configurations: Sequence[Configuration]) -> Mapping[Configuration, CostAnswer]:
        """Ask for those that are possible."""
        possible = [each for each in configurations if self._is_possible(each)]
        return {**self._impossible(configurations), **self._cost.ask(possible)}

    def look_up(
        self, configurations: Sequence[Configuration]
    ) -> Mapping[Configuration, CostAnswer]:
        """Answer for those that are known or impossible."""
        possible = [each for each in configurations if self._is_possible(each)]
        return {**self._impossible(configurations), **self._cost.known(possible)}

    def least_us(self, configuration: Configuration) -> float:
        """Return what the costs say."""
        return self._cost.at_least([configuration])[configuration].cost_us

    def estimate_us(self, configuration: Configuration) -> float:
        """Return what the costs say."""
        return self._cost.peek_us(configuration)

    def _impossible(
        self, configurations: Sequence[Configuration]
    ) -> dict[Configuration, CostAnswer]:
        never = CostAnswer(_NEVER_US, "never")
        return {each: never for each in configurations if not self._is_possible(each)}

    def _is_possible(self, configuration: Configuration) -> bool:
        return not configuration.computed or configuration in self._own
