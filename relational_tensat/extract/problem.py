"""The extraction problem and its answer, as plain arrays.

An e-graph is a list of e-nodes; each belongs to one e-class and needs one e-node of every class
among its children. A *choice* names one e-node per class that is needed, starting from the root
class; it must be acyclic. Its cost is the sum over the e-nodes reached, each counted once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.errors import InputError, RelationalTensatError

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

COST_TOLERANCE = 1e-9
"""Costs are sums of floats: two that are closer than this, relatively, are the same."""

UNUSED = -1
"""Stands in a choice for a class that the extracted graph does not contain."""


@dataclass(frozen=True, eq=False)
class ExtractionProblem:
    """An e-graph with costs, and the graph that it was grown from.

    Attributes:
        cost_us: per e-node, its kernel time in µs; finite. Negative ones occur only in files of other
            tools: see ``exact/solve/mip.py``.
        node_class: per e-node, its e-class.
        child_ptr: per e-node, where its children begin in ``child_idx``; one longer than the nodes.
        child_idx: the child classes of all e-nodes, one after the other, no class twice in a node.
        n_classes: classes are 0 … n_classes-1.
        root: the class to extract. Several roots are one zero-cost e-node over them.
        original: per class, the e-node of the graph that the e-graph was grown from, or ``UNUSED``.

    Raises:
        InputError: the arrays do not describe such an e-graph.
    """

    cost_us: Floats
    node_class: Ints
    child_ptr: Ints
    child_idx: Ints
    n_classes: int
    root: int
    original: Ints

    def __post_init__(self) -> None:
        _check_shapes(self)
        _check_values(self)
        if self.has_original:
            try:
                topological_order(self, self.original)
            except RelationalTensatError as error:
                raise InputError(
                    f"e-graph: the original graph is no valid choice: {error}"
                ) from None

    @property
    def n_nodes(self) -> int:
        """Number of e-nodes."""
        return len(self.cost_us)

    @property
    def has_original(self) -> bool:
        """Whether the graph that the e-graph was grown from is known."""
        return bool(self.original[self.root] != UNUSED)

    @property
    def has_negative_costs(self) -> bool:
        """Whether an e-node costs less than nothing."""
        return bool(np.any(self.cost_us < 0))

    @property
    def least_cost_us(self) -> float:
        """A cost that no choice is below: of each class, the cheapest e-node if that is negative."""
        least = np.zeros(self.n_classes)
        np.minimum.at(least, self.node_class, self.cost_us)
        return math.fsum(least.tolist())

    def children(self, node: int) -> Ints:
        """Return the child classes of e-node ``node``."""
        return self.child_idx[self.child_ptr[node] : self.child_ptr[node + 1]]


@dataclass(frozen=True, eq=False, repr=False)
class Extraction:
    """A chosen graph and what is known about how good it is.

    Attributes:
        choice: per class, the chosen e-node, or ``UNUSED``.
        cost_us: its cost, recomputed from the choice.
        bound_us: no choice is cheaper than this (``ExtractionProblem.least_cost_us``, which is 0 without
            negative costs, where nothing better was proven).
        gap: (cost - bound) / |cost|, at most 1, and 0 where both are the same.
        optimal: whether the choice was proven to be of least cost.
        method: the extractor that was asked for.
        seconds: wall time.
        note: one line for the report: the solver's remark, the cuts and repairs.
        interrupted: whether Ctrl-C ended it with the best so far; only of ``ilp``.
        reductions: e-nodes that each reduction took away, by its name; only of ``ilp``.
        size, reduced_size: counts of e-nodes, e-classes and edges, and of all components together
            that the first rounds of reductions left; zeros where none were made.
        components, distinct_components: how many these are, and how many are not isomorphic to others.
        simplex_iterations, branch_nodes: of HiGHS, in all linear and integer programs together;
            only of ``ilp``.
    """

    choice: Ints
    cost_us: float
    bound_us: float
    gap: float
    optimal: bool
    method: str
    seconds: float
    note: str
    interrupted: bool = False
    reductions: Mapping[str, int] = field(default_factory=dict)
    size: tuple[int, int, int] = (0, 0, 0)
    reduced_size: tuple[int, int, int] = (0, 0, 0)
    components: int = 0
    distinct_components: int = 0
    simplex_iterations: int = 0
    branch_nodes: int = 0

    @property
    def was_reduced(self) -> bool:
        """Whether reductions were made, so that ``reduced_size`` is what they left."""
        return any(self.reduced_size) or bool(self.reductions)

    def __repr__(self) -> str:
        proof = "optimal" if self.optimal else f"bound {self.bound_us:,.3f}"
        return f"Extraction({self.cost_us:,.3f} µs, {self.method}, {proof}, {self.seconds:.2f} s)"


def relative_gap(cost_us: float, bound_us: float) -> float:
    """Return how much of the cost might still be saved, as a fraction of it."""
    if cost_us <= bound_us:
        return 0.0
    return min((cost_us - bound_us) / abs(cost_us), 1.0) if cost_us else 1.0


def topological_order(problem: ExtractionProblem, choice: Ints) -> list[int]:
    """Return the classes that the choice reaches from the root, children first.

    Raises:
        RelationalTensatError: the choice is cyclic, or lacks an e-node for a class that it needs,
            or names an e-node of another class.
    """
    order: list[int] = []
    state: dict[int, bool] = {}  # False while its children are being visited, then True
    stack = [problem.root]
    while stack:
        klass = stack[-1]
        if klass in state:
            stack.pop()
            if not state[klass]:
                state[klass] = True
                order.append(klass)
            continue
        state[klass] = False
        node = int(choice[klass])
        if node == UNUSED or problem.node_class[node] != klass:
            raise RelationalTensatError(
                f"class {klass} is needed, but the choice has no e-node for it"
            )
        for child in problem.children(node).tolist():
            if child not in state:
                stack.append(child)
            elif not state[child]:
                raise RelationalTensatError(f"the choice is cyclic at class {child}")
    return order


def reachable(problem: ExtractionProblem, choice: Ints) -> Ints:
    """Return the choice with every class that the root does not need set to ``UNUSED``.

    Raises:
        RelationalTensatError: as for :func:`topological_order`.
    """
    pruned = np.full(problem.n_classes, UNUSED, dtype=np.int32)
    classes = topological_order(problem, choice)
    pruned[classes] = choice[classes]
    return pruned


def is_acyclic(problem: ExtractionProblem, choice: Ints) -> bool:
    """Return whether the choice is complete from the root and has no cycle."""
    try:
        topological_order(problem, choice)
    except RelationalTensatError:
        return False
    return True


def without_negative_costs(problem: ExtractionProblem) -> ExtractionProblem:
    """Return the e-graph with what costs less than nothing for free, as greedy methods need it."""
    return replace(problem, cost_us=np.maximum(problem.cost_us, 0.0))


def dag_cost_us(problem: ExtractionProblem, choice: Ints) -> float:
    """Return the cost of the chosen graph in µs, each e-node once.

    Raises:
        RelationalTensatError: as for :func:`topological_order`.
    """
    return math.fsum(problem.cost_us[choice[topological_order(problem, choice)]].tolist())


def _check_shapes(problem: ExtractionProblem) -> None:
    expected: list[tuple[str, int, type[np.generic]]] = [
        ("cost_us", problem.n_nodes, np.float64),
        ("node_class", problem.n_nodes, np.int32),
        ("child_ptr", problem.n_nodes + 1, np.int32),
        ("child_idx", len(problem.child_idx), np.int32),
        ("original", problem.n_classes, np.int32),
    ]
    for name, length, dtype in expected:
        array = getattr(problem, name)
        if array.shape != (length,) or array.dtype != dtype:
            raise InputError(
                f"e-graph: {name} is {array.dtype}{list(array.shape)}, "
                f"expected {np.dtype(dtype)}[{length}]"
            )
    pointers = problem.child_ptr
    if pointers[0] != 0 or pointers[-1] != len(problem.child_idx) or np.any(np.diff(pointers) < 0):
        raise InputError("e-graph: child_ptr must rise from 0 to the number of children")


def _check_values(problem: ExtractionProblem) -> None:
    bad_cost = np.flatnonzero(~np.isfinite(problem.cost_us))
    if len(bad_cost):
        node = int(bad_cost[0])
        raise InputError(
            f"e-graph: e-node {node} costs {problem.cost_us[node]} µs, expected a finite number"
        )
    for name, last in (
        ("node_class", problem.n_classes),
        ("child_idx", problem.n_classes),
        ("original", problem.n_nodes),
    ):
        array = getattr(problem, name)
        first = UNUSED if name == "original" else 0
        if len(array) and (int(array.min()) < first or int(array.max()) >= last):
            raise InputError(f"e-graph: {name} must lie in {first} … {last - 1}")
    if not 0 <= problem.root < problem.n_classes:
        raise InputError(f"e-graph: the root {problem.root} is none of {problem.n_classes} classes")
    owner = np.repeat(np.arange(problem.n_nodes), np.diff(problem.child_ptr))
    # Sorted: numpy's unique() hashes, at seventy times the price.
    edges = np.sort(owner.astype(np.int64) * problem.n_classes + problem.child_idx)
    if np.any(edges[1:] == edges[:-1]):
        raise InputError("e-graph: an e-node names the same child class twice")
