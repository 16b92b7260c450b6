"""Kernels in their places of a graph: of all that gain, those that share no work and close no cycle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from relational_tensat.custom_ops.parts import gain_us
from relational_tensat.custom_ops.timed_part import TimedPart
from relational_tensat.mugraph.fusion.candidates import KernelCandidate
from relational_tensat.mugraph.regions.regions import SHARED
from relational_tensat.tensor import Graph, Node, build_graph

PartPlace: TypeAlias = tuple[TimedPart, KernelCandidate]


def disjoint_places(graph: Graph, parts: Iterable[TimedPart]) -> list[PartPlace]:
    """Return places that share no node but free ones and close no cycle, those that gain most first."""
    chosen: list[PartPlace] = []
    taken: set[str] = set()
    for part in sorted(parts, key=lambda each: -gain_us(each.plain_us, each.kernel_us)):
        for place in part.places:
            costly = (node for node in place.nodes if node.op not in SHARED)
            own = {name for node in costly for name in node.outputs}
            if taken.isdisjoint(own):
                try:
                    _in_order(graph, [*chosen, (part, place)])
                except CycleError:
                    continue
                chosen.append((part, place))
                taken |= own
    return chosen


def parts_in(graph: Graph, parts: Iterable[TimedPart]) -> list[TimedPart]:
    """Return parts in the places alone where a graph has their kernels."""
    there = {node.outputs: node.attrs["mugraph"] for node in graph.nodes if node.op == "fused"}
    found = []
    for part in parts:
        pairs = zip(part.places, part.nodes, strict=True)
        own = [each for each in pairs if there.get(each[0].outputs) == part.kernel.key]
        if own:
            places, nodes = zip(*own, strict=True)
            found.append(replace(part, places=places, nodes=nodes))
    return found


def _in_order(graph: Graph, chosen: Sequence[PartPlace]) -> list[Node]:
    """Return the nodes of a graph with kernels in their places, in topological order.

    Raises:
        CycleError: no such order exists.
    """
    given = {  # what is within, too, stays where others read it
        name: number for number, (_, place) in enumerate(chosen) for name in place.outputs
    }
    found: dict[int, Node] = {}  # by where they stand, kernels where the last of their nodes stood
    for position, node in enumerate(graph.nodes):
        number = given.get(node.outputs[0])
        if number is None:
            found[position] = node
        elif node.outputs == chosen[number][1].nodes[-1].outputs:
            part, place = chosen[number]
            found[position] = part.nodes[part.places.index(place)]
    makers = {name: position for position, node in found.items() for name in node.outputs}
    order = TopologicalSorter(
        {
            position: {makers[name] for name in node.inputs if name in makers}
            for position, node in found.items()
        }
    )
    order.prepare()
    ready, nodes = [*order.get_ready()], []
    heapify(ready)
    while ready:  # as they stood, as far as that goes
        position = heappop(ready)
        nodes.append(found[position])
        order.done(position)
        for follower in order.get_ready():
            heappush(ready, follower)
    return nodes


def with_places(graph: Graph, chosen: Sequence[PartPlace]) -> Graph:
    """Return a graph with kernels in their places, without numbers that only these have read."""
    nodes = _in_order(graph, chosen)
    needed, kept = {*graph.outputs}, []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
            kept.append(node)
    return build_graph(
        graph.name, graph.inputs, graph.weights, kept[::-1], graph.outputs, graph.metadata,
        origin=graph.origin,
    )  # fmt: skip
