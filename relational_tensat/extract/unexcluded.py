"""What no bound excludes from a graph as cheap as the cheapest that is known."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.watch import Watch
from relational_tensat.extract.exact.reduce.reduced import unreduced
from relational_tensat.extract.exact.reduce.reductions.dropping import (
    drop_self_loops,
    drop_underivable,
)
from relational_tensat.extract.exact.relax.ascent import LandmarkAscent
from relational_tensat.extract.exact.relax.cycle_rows import two_cycle_rows
from relational_tensat.extract.exact.relax.relaxation import relax
from relational_tensat.extract.exact.solve.constraints import stack_rows
from relational_tensat.extract.exact.solve.mip import scaled_model
from relational_tensat.extract.exact.solve.search import Search
from relational_tensat.extract.exact.solve.solver_options import SolverOptions
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.index import children_by_node, nodes_by_class, parents_by_class
from relational_tensat.extract.problem import (
    COST_TOLERANCE,
    UNUSED,
    ExtractionProblem,
    Floats,
    Ints,
)


def unexcluded(
    problem: ExtractionProblem, choice: Ints, cost_us: float, most: int, watch: Watch | None = None
) -> list[int]:
    """Return the e-nodes of a graph, and after them others that no bound excludes from one as cheap.

    Each e-node comes after others of its children's classes, so that the first so many have a graph for
    each class of theirs. Of those that could come next, the one with the lowest bound does.

    Args:
        choice: the graph, per class its e-node; no class that the root does not need.
        cost_us: what it costs.
        most: at most so many others are returned; where that is no limit, all e-nodes of every graph that
            costs no more are among them.
        watch: when bounds are raised no further.
    """
    bounds_us = lower_bounds_us(problem, choice, watch or Watch())
    chosen = choice[choice != UNUSED]
    bounds_us[chosen] = -np.inf
    within = _reachable(problem, bounds_us <= cost_us * (1 + COST_TOLERANCE))
    return _derived(problem, np.where(within, bounds_us, np.inf), len(chosen) + most)


def lower_bounds_us(problem: ExtractionProblem, choice: Ints, watch: Watch) -> Floats:
    """Return, per e-node, what a graph with it costs at least; infinite where there is none.

    These are the best of the bounds by landmarks and of that of the relaxation with its reduced costs.

    Args:
        choice: a graph, per class its e-node.
        watch: when the relaxation is tightened no further.
    """
    derivable = drop_self_loops(drop_underivable(unreduced(problem)))
    smaller = derivable.problem
    start_us = np.where(derivable.within(choice), 0.0, smaller.cost_us)
    search = Search(smaller, DagDeriver(smaller).derive(start_us))
    bounds_us = np.full(problem.n_nodes, np.inf)
    bounds_us[derivable.node_origin] = np.maximum(
        _landmark_bounds_us(smaller), _relaxation_bounds_us(search, SolverOptions(watch))
    )
    return bounds_us


def _landmark_bounds_us(problem: ExtractionProblem) -> Floats:
    """Return the best of the ascents' bounds."""
    ascent, costs_us = LandmarkAscent(problem), problem.cost_us
    found = [ascent.ascend(costs_us, order) for order in ascent.orders(costs_us)]
    best_us: Floats = np.max([each.bound + each.excess for each in found], axis=0)
    return best_us


def _relaxation_bounds_us(search: Search, options: SolverOptions) -> Floats:
    """Return the bounds of the relaxation and its reduced costs; 0 where there is nothing to relax."""
    if search.closed:
        return np.zeros(search.problem.n_nodes)
    model = scaled_model(search, "auto")
    rows = stack_rows([model.rows, two_cycle_rows(search.problem)])
    relaxation = relax(search, model, rows, options)
    if relaxation is None:
        return np.zeros(search.problem.n_nodes)
    return relaxation.bound_us + relaxation.reduced_cost_us


def _reachable(problem: ExtractionProblem, usable: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which usable e-nodes the root comes to by way of usable ones."""
    nodes, children = nodes_by_class(problem), children_by_node(problem)
    reached, seen, stack = np.zeros(problem.n_nodes, np.bool_), {problem.root}, [problem.root]
    while stack:
        for node in nodes[stack.pop()]:
            if usable[node]:
                reached[node] = True
                new = [child for child in children[node] if child not in seen]
                seen.update(new)
                stack += new
    return reached


def _derived(problem: ExtractionProblem, keys: Floats, most: int) -> list[int]:
    """Return e-nodes with finite keys, operands first, of what could come next the least key first."""
    users, owner, key = parents_by_class(problem), problem.node_class.tolist(), keys.tolist()
    is_usable = (keys < np.inf).tolist()
    missing = np.diff(problem.child_ptr).tolist()
    queue = [(key[n], n) for n in range(problem.n_nodes) if is_usable[n] and not missing[n]]
    heapq.heapify(queue)
    derived: set[int] = set()
    order: list[int] = []
    while queue and len(order) < most:
        _, node = heapq.heappop(queue)
        order.append(node)
        if owner[node] in derived:
            continue
        derived.add(owner[node])
        for user in users[owner[node]]:
            missing[user] -= 1
            if is_usable[user] and not missing[user]:
                heapq.heappush(queue, (key[user], user))
    return order
