"""Regions of a model: what one node depends on and nothing else does, as far as operators and limits allow.

All readers of what is within are within, but for the last node's, so a region is convex. Regions may
overlap. What was left out, and why, is kept, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.mugraph_json import content_hash
from relational_tensat.mugraph.regions.lowering_regions import lowered
from relational_tensat.tensor import Graph, Node

#: A program of more operators is beyond a search of seconds.
_MOST_STEPS = 10
_FEWEST_STEPS = 2


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a model that is a program.

    Attributes:
        outputs: the values that the model's nodes at these places give; equal regions are one.
        nodes: how many nodes of the model one of them has.
        program: on index variables.
    """

    outputs: tuple[str, ...]
    nodes: int
    program: MuGraph


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A node that is the last of no region, or a region that went no further.

    Attributes:
        output: the value that it gives.
        reason: why.
    """

    output: str
    reason: str


def find_regions(graph: Graph) -> tuple[list[Region], list[LeftOut]]:
    """Return the regions of a model, recurring ones once, and what was left out.

    Args:
        graph: the model.
    """
    cones = _Cones(graph)
    regions: dict[str, Region] = {}
    left_out: list[LeftOut] = []
    within: list[frozenset[str]] = []
    for node in reversed(graph.nodes):
        try:
            nodes, program = cones.largest(node)
        except RelationalTensatError as error:
            left_out.append(LeftOut(node.outputs[0], str(error)))
            continue
        names = frozenset(n.outputs[0] for n in nodes)
        if len(program.steps) < _FEWEST_STEPS or any(names <= other for other in within):
            continue  # what it computes, a larger region does, too
        within.append(names)
        key = content_hash(replace(program, name=""))
        known = regions.get(key)
        outputs = (*(known.outputs if known else ()), node.outputs[0])
        regions[key] = Region(outputs, len(nodes), program)
    return list(regions.values()), left_out


class _Cones:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._makers: Mapping[str, Node] = {o: node for node in graph.nodes for o in node.outputs}
        self._readers: dict[str, set[str]] = {}
        for node in graph.nodes:
            for name in node.inputs:
                self._readers.setdefault(name, set()).add(node.outputs[0])

    def largest(self, root: Node) -> tuple[list[Node], MuGraph]:
        """Return the largest region that ends in a node, and its program.

        Raises:
            RelationalTensatError: the node alone is none.
        """
        region = {root.outputs[0]: root}
        program = self._lowered(region)
        refused: set[str] = set()
        while True:
            grown = None
            for maker in self._candidates(region, refused):
                larger = {**region, maker.outputs[0]: maker}
                try:
                    grown = larger, self._lowered(larger)
                except RelationalTensatError:
                    # The start of a chain: a root mean square is none before all of it is there.
                    region_chain = self._with_chain(larger)
                    if region_chain is None:
                        refused.add(maker.outputs[0])
                        continue
                    grown = region_chain
                if len(grown[1].steps) <= _MOST_STEPS:
                    break
                refused.add(maker.outputs[0])
                grown = None
            if grown is None:
                return self._ordered(region), program
            region, program = grown

    def _with_chain(self, region: dict[str, Node]) -> tuple[dict[str, Node], MuGraph] | None:
        """Return a region with up to four more nodes, if it is a program only then."""
        for _ in range(5):
            makers = [m for m in self._candidates(region, set()) if m.op in _CHAIN]
            if not makers:
                return None
            region = {**region, **{m.outputs[0]: m for m in makers}}
            try:
                return region, self._lowered(region)
            except RelationalTensatError:
                continue
        return None

    def _candidates(self, region: dict[str, Node], refused: set[str]) -> Iterator[Node]:
        """Yield nodes whose result only the region reads, nearest first."""
        for node in list(region.values()):
            for name in node.inputs:
                maker = self._makers.get(name)
                if maker is None or name in region or name in refused:
                    continue
                is_inner = self._readers[name] <= region.keys() and name not in self._graph.outputs
                if is_inner and len(maker.outputs) == 1:
                    yield maker

    def _lowered(self, region: dict[str, Node]) -> MuGraph:
        nodes = self._ordered(region)
        return lowered(self._graph, nodes, nodes[-1].outputs[0]).program

    def _ordered(self, region: dict[str, Node]) -> list[Node]:
        return [node for node in self._graph.nodes if node.outputs[0] in region]


#: What the chain of a root mean square is made of.
_CHAIN = frozenset({"reciprocal", "sqrt", "add", "reduce_mean", "pow", "div"})
