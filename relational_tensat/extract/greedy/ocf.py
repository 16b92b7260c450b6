"""Algorithm 2 of the paper of tree search (Hartmann et al., 2024): greedy with a memory of sharing.

As its code has it (``new_greedy`` of the paper's repository): egg's extractor, with another cost of an
e-node. It visits class after class until no class gets cheaper. Every class remembers a *history*, the
classes that its best e-node is built from and what each was charged. Of an e-node's children, the first is
charged in full. A later one is free if it is in the history already; else it is charged its cost less the
costliest class that its own history shares with it. So a part that is shared costs too much where it is no
chain: the paper's Figure 9 is a graph that costs 7 and is taken to cost 8. The state depends on the order
of the visits and need not converge to anything: that is the algorithm, not this file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from relational_tensat.base.errors import NoSolutionError
from relational_tensat.extract.index import children_by_node, nodes_by_class
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Ints

History = dict[int, float]


@dataclass(frozen=True, eq=False)
class OcfResult:
    """The outcome of the algorithm.

    Attributes:
        choice: per class, the chosen e-node, or ``UNUSED``. Not checked: it may be cyclic.
        passes: how often all classes were visited.
        finished: whether it ended by itself, and was not stopped.
        predicted_us: the cost of the choice in the algorithm's belief.
    """

    choice: Ints
    passes: int
    finished: bool
    predicted_us: float


def greedy_by_history(problem: ExtractionProblem, should_stop: Callable[[], bool]) -> OcfResult:
    """Run the algorithm.

    Args:
        problem: the e-graph; its classes are visited by number, children in order of their number.
        should_stop: asked now and then; the choice so far is returned.

    Raises:
        NoSolutionError: there is no choice for the root (by then).
    """
    members, children = nodes_by_class(problem), children_by_node(problem)
    own_cost = problem.cost_us.tolist()
    costs: list[float | None] = [None] * problem.n_classes
    histories: list[History] = [{} for _ in range(problem.n_classes)]
    choice = np.full(problem.n_classes, UNUSED, dtype=np.int32)
    passes, has_changed = 0, True
    while has_changed and not should_stop():
        has_changed = False
        passes += 1
        for klass in range(problem.n_classes):
            if klass % 256 == 0 and should_stop():
                break
            best, best_node, best_history = None, UNUSED, _NOTHING
            for node in members[klass]:
                charge = _charge(own_cost[node], children[node], costs, histories)
                if charge is not None and (best is None or charge[0] < best):
                    best, best_history, best_node = *charge, node
            if best is None:
                continue
            if best_history:
                histories[klass] = best_history
            class_cost = costs[klass]
            if class_cost is None or best < class_cost:
                costs[klass], choice[klass] = best, best_node
                has_changed = True
    predicted_us = costs[problem.root]
    if predicted_us is None:
        raise NoSolutionError(f"Algorithm 2 found no choice for the root class {problem.root}")
    return OcfResult(choice, passes, not has_changed, predicted_us)


_NOTHING: History = {}


def _charge(
    own: float, children: Sequence[int], costs: list[float | None], histories: list[History]
) -> tuple[float, History] | None:
    """Return an e-node's cost and history; None while a child has no cost yet."""
    total = own
    history: History = {}
    for child in children:
        cost = costs[child]
        if cost is None:
            return None
        if not history:
            charged = cost
            history = dict(histories[child])
        elif child in history:
            continue
        else:
            shared = 0.0
            for key, value in histories[child].items():
                if key in history:
                    shared = max(shared, value)
                else:
                    history[key] = value
            charged = max(cost - shared, 0.0)
        if charged > 0.0:
            history[child] = charged
        total += charged
    return total, history
