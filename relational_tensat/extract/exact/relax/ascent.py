"""Dual ascent: a bound made of landmarks that share no cost, and what is left of the costs.

As LM-cut does in planning: ``h`` of a class is the weight of its cheapest derivation if of all
children only the dearest had to be paid. Search from the root along the operands, over e-nodes of
weight 0, each to its dearest child. Every acyclic choice takes an e-node that enters this zone:
one of a class in the zone, with no child in the zone. The least weight among those is added to the
bound and taken off each of them, and so on until ``h`` of the root is 0.

What is added up is a bound: of the weight of any choice, every landmark used up its own part.

Where the root has one e-node, every choice derives all of its children, so each may stand in for
the root. Where they depend on one another, the zone around the last of them is so wide that little
is found in it of what the others are made of; one after the other, more is. Which order gives the
highest bound is not known beforehand, and landmarks of all orders serve as rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from relational_tensat.extract.index import children_by_node, nodes_by_class, parents_by_class
from relational_tensat.extract.problem import ExtractionProblem, Floats
from relational_tensat.extract.techniques import Gain, Technique, declare

_INFINITE = float("inf")
_TINY = 1e-9
"""Weights below this fraction of the largest are taken as nothing."""

ASCENT = declare(
    Technique(
        "ascent",
        "landmarks that share no cost: a bound without solver, and rows to begin with",
        earns_on=Gain("zones 100", "simplex_iterations"),
    )
)


@dataclass(frozen=True, eq=False)
class Ascent:
    """The result of an ascent.

    Attributes:
        bound: no acyclic choice weighs less.
        landmarks: sets of e-nodes of which every choice takes one.
        excess: per e-node, by how much more than the bound a choice with it weighs at least.
        rest: per e-node, what the landmarks have left of its weight.
    """

    bound: float
    landmarks: list[list[int]]
    excess: Floats
    rest: Floats


class LandmarkAscent:
    """Ascends over one e-graph, under any weights of its e-nodes."""

    def __init__(self, problem: ExtractionProblem) -> None:
        self._problem = problem
        self._children = children_by_node(problem)
        self._nodes = nodes_by_class(problem)
        self._users = parents_by_class(problem)
        self._owner: list[int] = problem.node_class.tolist()

    def orders(self, weights: Floats) -> list[list[int]]:
        """Return orders of classes to ascend to: the root; its children, dearest last and first."""
        root = self._problem.root
        if len(self._nodes[root]) != 1:
            return [[root]]
        dearest = self._dearest(weights.tolist())
        required = sorted(self._children[self._nodes[root][0]], key=dearest.__getitem__)
        if len(required) < 2:
            return [[root]]
        return [[root], [*required, root], [*reversed(required), root]]

    def ascend(
        self,
        weights: Floats,
        targets: list[int] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Ascent:
        """Return a bound on what a choice weighs.

        Args:
            weights: per e-node, not negative.
            targets: classes that every choice contains, to ascend to in this order, the root last;
                by default only the root.
            stop: asked between landmarks; True ends the ascent with what is there.
        """
        tiny = _TINY * float(weights.max(initial=0.0))
        weight: list[float] = np.where(weights > tiny, weights, 0.0).tolist()
        dearest = self._dearest(weight)
        bound = 0.0
        landmarks: list[list[int]] = []
        for target in targets or [self._problem.root]:
            while tiny < dearest[target] < _INFINITE and not (stop is not None and stop()):
                landmark = self._landmark(target, weight, dearest)
                least = min(weight[node] for node in landmark)
                bound += least
                landmarks.append(landmark)
                for node in landmark:
                    remainder = weight[node] - least
                    weight[node] = remainder if remainder > tiny else 0.0
                self._lower(landmark, weight, dearest)
        return Ascent(bound, landmarks, self._excess(weight, dearest), np.array(weight))

    def _dearest(self, weight: list[float]) -> list[float]:
        """Return ``h`` of every class (Dijkstra over e-nodes whose last child was settled)."""
        heights = [_INFINITE] * self._problem.n_classes
        missing_count = [len(part) for part in self._children]
        queue = [(weight[n], self._owner[n]) for n, count in enumerate(missing_count) if count == 0]
        heapq.heapify(queue)
        while queue:
            value, klass = heapq.heappop(queue)
            if value >= heights[klass]:
                continue
            heights[klass] = value
            for user in self._users[klass]:
                missing_count[user] -= 1
                if missing_count[user] == 0 and weight[user] + value < heights[self._owner[user]]:
                    heapq.heappush(queue, (weight[user] + value, self._owner[user]))
        return heights

    def _landmark(self, target: int, weight: list[float], dearest: list[float]) -> list[int]:
        """Return the e-nodes that enter the zone which free e-nodes connect with a class."""
        zone = {target}
        stack = [target]
        paid: list[int] = []
        while stack:
            for node in self._nodes[stack.pop()]:
                if weight[node] > 0.0:
                    paid.append(node)
                    continue
                child = max(self._children[node], key=dearest.__getitem__)
                if child not in zone:
                    zone.add(child)
                    stack.append(child)
        return [node for node in paid if zone.isdisjoint(self._children[node])]

    def _lower(self, nodes: list[int], weight: list[float], dearest: list[float]) -> None:
        """Lower ``h`` in place after the weights of some e-nodes fell."""
        children, owner = self._children, self._owner
        queue: list[tuple[float, int]] = []
        for node in nodes:
            value = weight[node] + max([dearest[child] for child in children[node]], default=0.0)
            if value < dearest[owner[node]]:
                queue.append((value, owner[node]))
        heapq.heapify(queue)
        while queue:
            value, klass = heapq.heappop(queue)
            if value >= dearest[klass]:
                continue
            dearest[klass] = value
            for user in self._users[klass]:
                part = children[user]
                above = weight[user] + (
                    value if len(part) == 1 else max([dearest[child] for child in part])
                )
                if above < dearest[owner[user]]:
                    heapq.heappush(queue, (above, owner[user]))

    def _excess(self, weight: list[float], dearest: list[float]) -> Floats:
        """Return, per e-node, its own weight and ``h`` of its dearest child: both are in addition."""
        return np.array(
            [
                own + max([dearest[child] for child in part], default=0.0)
                for own, part in zip(weight, self._children, strict=True)
            ]
        )
