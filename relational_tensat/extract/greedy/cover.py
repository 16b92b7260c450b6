"""Top-down greedy that lets several classes pay together for what serves them all.

Bottom-up greedy never merges: computing two products as one and splitting is costlier than either product
alone, and only pays if *both* classes choose it. Seen from above this is a set cover. A *giver* is a class
that others have for free (their free e-nodes need it, as the splits of a merged product do). The one with
the lowest price per wanted class that it serves is bought, and its needs are wanted next.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from heapq import heapify, heappop, heappush

import numpy as np

from relational_tensat.base.deadline import Check, unlimited
from relational_tensat.extract.exact.reduce.smaller_problem import Mask
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.index import (
    Adjacency,
    children_by_node,
    nodes_by_class,
    parents_by_class,
)
from relational_tensat.extract.problem import ExtractionProblem, Floats, Ints
from relational_tensat.extract.techniques import Technique, TechniqueGain, declare

COVERS = declare(
    Technique(
        "covers",
        "greedy choices in which several classes pay together",
        earns_on=TechniqueGain("inception_v3 k=2", "simplex_iterations"),
    )
)

_TRIALS = 8
_SPREAD = 0.05
"""Standard deviation of the logarithm of the random factors on prices."""


def covers(problem: ExtractionProblem, seed: int, check: Check = unlimited) -> Iterator[Ints]:
    """Yield choices for an e-graph whose every class is derivable, the plain one first."""
    greedy = CoverGreedy(problem, check)
    rng = np.random.default_rng(seed)
    yield greedy.derive()
    for _ in range(_TRIALS):
        yield greedy.derive(np.exp(rng.normal(0.0, _SPREAD, problem.n_classes)))


class CoverGreedy:
    """Derives choices top-down for one e-graph whose every class is derivable."""

    def __init__(self, problem: ExtractionProblem, check: Check = unlimited) -> None:
        self._problem = problem
        self._check = check
        self._members = nodes_by_class(problem)
        self._parents = parents_by_class(problem)
        self._children = children_by_node(problem)
        self._node_class = problem.node_class.tolist()
        self._cost_us = problem.cost_us.tolist()
        self._begin = _State(problem)
        leaves = [node for node, needs in enumerate(self._children) if not needs]
        for node in leaves:
            klass, self._begin.total[node] = self._node_class[node], self._cost_us[node]
            self._begin.price[klass] = min(self._begin.price[klass], self._cost_us[node])
        self._lower_prices(self._begin, [self._node_class[node] for node in leaves])
        self._direct = _direct_givers(problem, self._members)
        self._givers: dict[int, Ints] = {}
        self._deriver = DagDeriver(problem, check=check)

    def derive(self, factors: Floats | None = None) -> Ints:
        """Return a choice, pruned to what the root needs.

        Args:
            factors: per class, a factor of its price in comparisons; random factors near 1 give other
                choices.
        """
        problem = self._problem
        factor = np.ones(problem.n_classes) if factors is None else factors
        state = self._begin.copy()
        while state.open_classes:
            self._check()
            at_once = [
                klass
                for klass in sorted(state.open_classes)
                if state.price[klass] == 0.0 or len(self._givers_of(klass)) == 1
            ]
            taken = at_once or [self._next(state, factor)]
            for klass in taken:
                self._take(state, klass)
            self._lower_prices(state, taken)
        # Taken e-nodes may depend on themselves: derive from the leaves, preferring those taken.
        return self._deriver.derive(np.where(state.is_taken, 0.0, problem.cost_us))

    def _next(self, state: _State, factor: Floats) -> int:
        """Return the class to buy: an open one that must be bought alone, else a giver."""
        classes = sorted(state.open_classes)
        served_count = np.zeros(self._problem.n_classes)
        for klass in classes:
            served_count[self._givers_of(klass)] += 1
        alone = [klass for klass in classes if served_count[self._givers_of(klass)].max() < 2]
        if alone:
            # From the top down, so that many are open at once when givers are compared.
            return max(alone, key=lambda klass: (state.price[klass], klass))
        price = np.frombuffer(state.price)
        ratio = np.where(served_count > 0, price * factor / np.maximum(served_count, 1.0), np.inf)
        return int(np.argmin(ratio))

    def _take(self, state: _State, klass: int) -> None:
        """Buy a class by its cheapest e-node; the classes that it needs become open."""
        node = min(self._members[klass], key=state.total.__getitem__)
        state.is_taken[node] = True
        state.is_paid[klass] = True
        state.price[klass] = 0.0
        state.open_classes.discard(klass)
        needs = self._problem.children(node).tolist()
        state.open_classes.update(child for child in needs if not state.is_paid[child])

    def _givers_of(self, klass: int) -> Ints:
        """Return the class itself and all classes from which free e-nodes lead to it."""
        if klass not in self._givers:
            givers = {klass}
            stack = [klass]
            while stack:
                for giver in self._direct[stack.pop()]:
                    if giver not in givers:
                        givers.add(giver)
                        stack.append(giver)
            self._givers[klass] = np.array(sorted(givers), dtype=np.int32)
        return self._givers[klass]

    def _lower_prices(self, state: _State, classes: list[int]) -> None:
        """Lower tree prices until they hold, from these classes up; cheapest first, so each once."""
        price, total, cost_us = state.price, state.total, self._cost_us
        queue = [(price[klass], klass) for klass in classes]
        heapify(queue)
        while queue:
            price_us, klass = heappop(queue)
            if price_us > price[klass]:
                continue
            for node in self._parents[klass]:
                total_us = cost_us[node] + sum([price[child] for child in self._children[node]])
                total[node] = total_us
                owner = self._node_class[node]
                if total_us < price[owner]:
                    price[owner] = total_us
                    heappush(queue, (total_us, owner))


class _State:
    """The classes bought so far, and those still to derive.

    Attributes:
        price, total: tree prices of classes and of e-nodes, in µs.
    """

    def __init__(self, problem: ExtractionProblem) -> None:
        self._problem = problem
        self.price = array("d", [np.inf]) * problem.n_classes
        self.total = array("d", [np.inf]) * problem.n_nodes
        self.is_paid: Mask = np.zeros(problem.n_classes, dtype=np.bool_)
        self.is_taken: Mask = np.zeros(problem.n_nodes, dtype=np.bool_)
        self.open_classes: set[int] = {problem.root}

    def copy(self) -> _State:
        """Return one with these prices, of which nothing is bought."""
        copy = _State(self._problem)
        copy.price[:], copy.total[:] = self.price, self.total
        return copy


def _direct_givers(problem: ExtractionProblem, members: Adjacency) -> list[list[int]]:
    """Return, per class, the classes that are all that one of its free e-nodes needs."""
    arity = np.diff(problem.child_ptr)
    single_free = (problem.cost_us == 0) & (arity == 1)
    return [
        sorted({int(problem.children(node)[0]) for node in part if single_free[node]})
        for part in members
    ]
