"""Slack: how far the other e-nodes of an e-graph are from its cheapest graph."""

from __future__ import annotations

import heapq

import numpy as np

from relational_tensat.explore.seed import Slack
from relational_tensat.extract.exact.relax.ascent import LandmarkAscent
from relational_tensat.extract.index import nodes_by_class
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Floats, Ints


def slack_of(problem: ExtractionProblem, choice: Ints, enodes: Ints) -> Slack:
    """Return what e-nodes would add to a choice, by what landmarks have left of their costs.

    Landmarks that share no cost (``LandmarkAscent``, in the order with the highest bound) account for most
    of what the cheapest graph costs; the rest of an e-node's cost is what it would add. The chosen e-nodes
    have none. A class below others is as far away as the nearest way to it from the root.

    Args:
        choice: a cheapest graph, per class its e-node.
        enodes: their ids.
    """
    ascent = LandmarkAscent(problem)
    ascents = [ascent.ascend(problem.cost_us, order) for order in ascent.orders(problem.cost_us)]
    rest_us = max(ascents, key=lambda found: found.bound).rest.copy()
    rest_us[choice[choice != UNUSED]] = 0.0
    return Slack(enodes, rest_us, _distances(problem, rest_us)[problem.node_class])


def _distances(problem: ExtractionProblem, weights: Floats) -> Floats:
    """Return the least weight of the e-nodes on a way from the root to each class (Dijkstra)."""
    nodes, weight = nodes_by_class(problem), weights.tolist()
    pointer, children = problem.child_ptr.tolist(), problem.child_idx.tolist()
    distance = [np.inf] * problem.n_classes
    distance[problem.root] = 0.0
    queue = [(0.0, problem.root)]
    while queue:
        so_far, owner = heapq.heappop(queue)
        if so_far > distance[owner]:
            continue
        for node in nodes[owner]:
            total = so_far + weight[node]
            for child in children[pointer[node] : pointer[node + 1]]:
                if total < distance[child]:
                    distance[child] = total
                    heapq.heappush(queue, (total, child))
    return np.array(distance)
