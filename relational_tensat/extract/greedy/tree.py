"""Tree-greedy extraction, as TENSAT's: the e-node of least tree cost in every class.

The tree cost of an e-node is its own cost plus the tree costs of its children, so shared work is
charged once per use; in deep networks that grows exponentially (TENSAT+MCTS, table 1).

Ties are broken by *rank*: 0 for an e-node that costs more than each of its children, else one more
than the highest rank among those that cost as much. (cost, rank) rises from every child to its
user, even where e-nodes cost nothing, so choosing by it closes no cycle; and which e-nodes are
chosen does not depend on the order of the computation (``in_sql`` finds the same).
"""

from __future__ import annotations

import heapq

import numpy as np

from relational_tensat.base.errors import NoSolutionError
from relational_tensat.extract.index import parents_by_class
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Floats, Ints, reachable

TREE_COST_CEILING = 1e300
"""Tree costs above it count as equal: they would overflow, and no longer be comparable."""


def tree_greedy(problem: ExtractionProblem) -> Ints:
    """Return the choice of least tree cost, pruned to what the root needs.

    Classes are settled in order of their tree cost (Knuth's generalisation of Dijkstra), so the
    choice is acyclic even where e-nodes cost nothing.

    Raises:
        NoSolutionError: the root has no acyclic derivation.
    """
    choice, _ = settle_by_tree_cost(problem, problem.root)
    if choice[problem.root] == UNUSED:
        raise NoSolutionError(f"the root class {problem.root} has no acyclic derivation")
    return reachable(problem, choice)


def settle_by_tree_cost(problem: ExtractionProblem, target: int | None) -> tuple[Ints, Floats]:
    """Settle classes up to ``target``, or all, in order of their tree cost.

    Returns:
        Per class, the chosen e-node and the tree cost in µs; ``UNUSED`` and infinite where the
        class has no acyclic derivation, or comes after the target.
    """
    parents = parents_by_class(problem)
    node_class = problem.node_class.tolist()
    missing_count = np.diff(problem.child_ptr).tolist()
    own = np.minimum(problem.cost_us, TREE_COST_CEILING).tolist()
    below = [0.0] * problem.n_nodes
    choice = np.full(problem.n_classes, UNUSED, dtype=np.int32)
    costs = np.full(problem.n_classes, np.inf)
    is_settled = [False] * problem.n_classes
    # An entry is (cost, rank * number of e-nodes + e-node).
    size = problem.n_nodes
    queue = [(own[node], node) for node, count in enumerate(missing_count) if count == 0]
    heapq.heapify(queue)
    while queue:
        cost, place = heapq.heappop(queue)
        rank, node = divmod(place, size)
        klass = node_class[node]
        if is_settled[klass]:
            continue
        is_settled[klass] = True
        choice[klass] = node
        costs[klass] = cost
        if klass == target:
            break
        for parent in parents[klass]:
            below[parent] += cost
            missing_count[parent] -= 1
            if missing_count[parent] == 0:
                total = min(below[parent] + own[parent], TREE_COST_CEILING)
                # The child settled last has the highest (cost, rank) of all.
                level = rank + 1 if total == cost else 0
                heapq.heappush(queue, (total, level * size + parent))
    return choice, costs
