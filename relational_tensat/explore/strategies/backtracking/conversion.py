"""From a tensor graph to the search's first graph, and from any of its graphs back."""

from __future__ import annotations

from relational_tensat.cost.cost_model import CostModel
from relational_tensat.egraph.catalogue import Catalogue, Symbol
from relational_tensat.egraph.chosen_graph import ChosenNode, build_chosen
from relational_tensat.egraph.loading import LoadedGraph, load_rows
from relational_tensat.explore.strategies.backtracking.graph_state import State
from relational_tensat.explore.strategies.backtracking.universe import Entry, Universe
from relational_tensat.tensor import Graph


class Loaded:
    """A tensor graph as the search sees it.

    Attributes:
        state: the graph.
    """

    def __init__(self, graph: Graph, cost: CostModel) -> None:
        self._graph = graph
        catalogue = Catalogue()
        self._rows: LoadedGraph = load_rows(graph, catalogue, 1)
        universe = Universe(cost)
        values: list[int] = []
        self._entries: dict[int, Entry] = {}
        for signature, children in zip(self._rows.signatures, self._rows.children, strict=True):
            symbol = catalogue.symbol_of(signature)
            operands = [values[child - 1] for child in children]
            entry = (universe.symbol(symbol.op, symbol.attrs), *operands)
            value = universe.new_value(entry, universe.type(catalogue.type_of(signature)))
            values.append(value)
            self._entries[value] = entry
        self._values = values
        self._outputs = [values[enode - 1] for enode in self._rows.outputs]
        self.state = State(universe, self._entries, self._outputs)

    def graph(self, state: State) -> Graph:
        """Return a graph of the search as a tensor graph; values that stayed keep their names."""
        universe = state.universe
        nodes = {}
        for value, entry in state.entries.items():
            op, attrs = universe.symbols[entry[0]]
            children = entry[1:]
            original = value if self._entries.get(value) == entry else -1
            kind = universe.types[universe.type_of[value]]
            nodes[value] = ChosenNode(original, Symbol(op, attrs, len(children)), kind, children)
        names = [
            (self._values[enode - 1], name, self._values[enode - 1], node_name)
            for name, enode, node_name in self._rows.values
        ]
        outputs = list(zip(self._graph.outputs, state.outputs, strict=True))
        return build_chosen(self._graph, nodes, names, outputs)
