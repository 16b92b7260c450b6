"""Tree-greedy extraction, as TENSAT's: the e-node of least tree cost in every class.

The tree cost of an e-node is its own cost plus the tree costs of its children, so shared work is
charged once per use; in deep networks that grows exponentially (TENSAT+MCTS, table 1).
"""

from __future__ import annotations

import heapq

import numpy as np

from relational_tensat.errors import NoSolutionError
from relational_tensat.extract.index import parents_by_class
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Ints, reachable

TREE_COST_CEILING = 1e300
"""Tree costs above it count as equal: they would overflow, and tell nothing any more."""


def tree_greedy(problem: ExtractionProblem) -> Ints:
    """Return the choice of least tree cost, pruned to what the root needs.

    Classes are settled in order of their tree cost (Knuth's generalisation of Dijkstra), so the
    choice is acyclic even where e-nodes cost nothing.

    Raises:
        NoSolutionError: the root has no acyclic derivation.
    """
    parents = parents_by_class(problem)
    node_class = problem.node_class.tolist()
    missing = np.diff(problem.child_ptr).tolist()
    tree_cost = problem.cost_us.tolist()
    choice = np.full(problem.n_classes, UNUSED, dtype=np.int32)
    settled = [False] * problem.n_classes
    queue = [(tree_cost[node], node) for node, count in enumerate(missing) if count == 0]
    heapq.heapify(queue)
    while queue:
        cost, node = heapq.heappop(queue)
        klass = node_class[node]
        if settled[klass]:
            continue
        settled[klass] = True
        choice[klass] = node
        if klass == problem.root:
            return reachable(problem, choice)
        for parent in parents[klass]:
            tree_cost[parent] = min(tree_cost[parent] + cost, TREE_COST_CEILING)
            missing[parent] -= 1
            if missing[parent] == 0:
                heapq.heappush(queue, (tree_cost[parent], parent))
    raise NoSolutionError(f"the root class {problem.root} has no acyclic derivation")
