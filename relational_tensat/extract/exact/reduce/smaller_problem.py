"""A smaller e-graph that stands for a larger one, and the way back.

A reduction maps a :class:`Reduced` to a smaller one and keeps at least one optimum. E-nodes and classes are
renumbered each time. ``node_origin`` and ``class_origin`` name them in the e-graph that all began with, and
``fixed`` holds the choices already made for classes that are gone.

An e-node may stand for several of the source, a *chain*: one that was merged with what it needs. The way
back gathers all e-nodes that the chosen ones stand for and derives the root from them. They were paid for
together, so no choice among them costs more; and as the smaller choice is acyclic, they derive the root.

Reductions that make new e-nodes rewrite a ``Draft`` of the e-graph, e-node by e-node.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from relational_tensat.extract.index import (
    child_sets,
    edge_owner,
    nodes_by_class,
    parents_by_class,
)
from relational_tensat.extract.problem import (
    UNUSED,
    ExtractionProblem,
    Ints,
    reachable,
    topological_order,
)

Mask = NDArray[np.bool_]

_reached_wholly: WeakSet[ExtractionProblem] = WeakSet()
"""E-graphs whose root is known to reach all of their classes."""


@dataclass(frozen=True, eq=False)
class Reduced:
    """An e-graph and what its e-nodes and classes are in the e-graph it came from.

    Attributes:
        problem: the smaller e-graph; its ``original`` is all unused.
        source: the e-graph that all reductions began with.
        node_origin: per e-node, one of the source; or the number of source e-nodes plus the place
            of its chain in ``chains``; or ``UNUSED`` for the free e-node of a root put above all.
        class_origin: per class, the class of the source, or ``UNUSED`` for such a root.
        fixed: per class of the source, the e-node to take (as in ``node_origin``; free of cost) if the
            class is needed but is no longer in ``problem``.
        chains: e-nodes of the source that one e-node stands for together, the topmost first.
    """

    problem: ExtractionProblem
    source: ExtractionProblem
    node_origin: Ints
    class_origin: Ints
    fixed: Ints
    chains: tuple[tuple[int, ...], ...] = ()

    def lift(self, choice: Ints) -> Ints:
        """Return a choice of the source that costs no more than this one of the smaller e-graph."""
        if self.chains:
            nodes = choice[topological_order(self.problem, choice)]  # others are not paid for
            origins = self.node_origin[nodes].tolist()
            return reachable(self.source, derived(self.source, self._candidates(origins)))
        lifted = self.fixed.copy()
        used_classes = np.flatnonzero((choice != UNUSED) & (self.class_origin != UNUSED))
        lifted[self.class_origin[used_classes]] = self.node_origin[choice[used_classes]]
        return reachable(self.source, lifted)

    def expanded(self, origin: int) -> tuple[int, ...]:
        """Return the e-nodes of the source that an origin stands for."""
        if origin == UNUSED:
            return ()
        n_source = self.source.n_nodes
        return (origin,) if origin < n_source else self.chains[origin - n_source]

    def within(self, choice: Ints) -> Mask:
        """Return which e-nodes stand only for what a choice of the source contains."""
        n_source = self.source.n_nodes
        contained = np.zeros(n_source + len(self.chains) + 1, dtype=np.bool_)  # last is UNUSED
        contained[choice[choice != UNUSED]] = True
        for place, chain in enumerate(self.chains):
            contained[n_source + place] = all(contained[node] for node in chain)
        return contained[self.node_origin]

    def _candidates(self, origins: list[int]) -> list[list[int]]:
        """Return, per class of the source, the e-nodes of these origins, then what is fixed."""
        candidates: list[list[int]] = [[] for _ in range(self.source.n_classes)]
        for origin in [*origins, *self.fixed[self.fixed != UNUSED].tolist()]:
            for node in self.expanded(origin):
                candidates[self.source.node_class[node]].append(node)
        return candidates

    @property
    def size(self) -> tuple[int, int, int]:
        """Numbers of e-nodes, classes and edges."""
        return self.problem.n_nodes, self.problem.n_classes, len(self.problem.child_idx)


def unreduced(problem: ExtractionProblem) -> Reduced:
    """Begin: the e-graph stands for itself."""
    bare = ExtractionProblem(
        problem.cost_us,
        problem.node_class,
        problem.child_ptr,
        problem.child_idx,
        problem.n_classes,
        problem.root,
        np.full(problem.n_classes, UNUSED, dtype=np.int32),
    )
    return Reduced(
        problem=bare,
        source=problem,
        node_origin=np.arange(problem.n_nodes, dtype=np.int32),
        class_origin=np.arange(problem.n_classes, dtype=np.int32),
        fixed=np.full(problem.n_classes, UNUSED, dtype=np.int32),
    )


def keep(
    reduced: Reduced,
    nodes: Mask,
    *,
    fixed: Ints | None = None,
    edges: tuple[Ints, Ints] | None = None,
) -> Reduced:
    """Keep some e-nodes, drop the classes that the root no longer reaches, and renumber.

    Args:
        reduced: where to begin.
        nodes: which e-nodes to keep.
        fixed: choices for classes of the *source* that go away, if any were made.
        edges: new children, as (e-node, child class) pairs in the numbering before, if they change.
    """
    problem = reduced.problem
    is_as_before = edges is None and fixed is None and bool(nodes.all())
    if is_as_before and problem in _reached_wholly:
        return reduced  # most reductions find nothing most of the time
    owner, child = edges or (edge_owner(problem.child_ptr), problem.child_idx)
    alive = nodes[owner]
    owner, child = owner[alive], child[alive]
    reached = _reached(problem, owner, child)
    nodes = nodes & reached[problem.node_class]
    if is_as_before and reached.all():
        _reached_wholly.add(problem)
        return reduced
    alive = nodes[owner]
    owner, child = owner[alive], child[alive]
    new_class = np.cumsum(reached) - 1
    new_node = np.cumsum(nodes) - 1
    order = np.lexsort((child, owner))
    counts = np.bincount(new_node[owner], minlength=int(nodes.sum()))
    n_classes = int(reached.sum())
    smaller = ExtractionProblem(
        cost_us=problem.cost_us[nodes],
        node_class=new_class[problem.node_class[nodes]].astype(np.int32),
        child_ptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        child_idx=new_class[child[order]].astype(np.int32),
        n_classes=n_classes,
        root=int(new_class[problem.root]),
        original=np.full(n_classes, UNUSED, dtype=np.int32),
    )
    _reached_wholly.add(smaller)
    return Reduced(
        problem=smaller,
        source=reduced.source,
        node_origin=reduced.node_origin[nodes],
        class_origin=reduced.class_origin[reached],
        fixed=reduced.fixed if fixed is None else fixed,
        chains=reduced.chains,
    )


def derived(problem: ExtractionProblem, candidates: list[list[int]]) -> Ints:
    """Return a choice of e-nodes among candidates, from the leaves up, as far as they reach.

    Args:
        problem: the e-graph.
        candidates: per class, the e-nodes that may be taken; earlier ones where several could.
    """
    missing_count: dict[int, int] = {}
    parents: dict[int, list[int]] = {}
    ready: deque[int] = deque()
    reached = {problem.root}
    stack = [problem.root]
    while stack:
        for node in candidates[stack.pop()]:
            if node in missing_count:
                continue
            children = problem.children(node).tolist()
            missing_count[node] = len(children)
            if not children:
                ready.append(node)
            for child in children:
                parents.setdefault(child, []).append(node)
                if child not in reached:
                    reached.add(child)
                    stack.append(child)
    choice = np.full(problem.n_classes, UNUSED, dtype=np.int32)
    while ready:
        node = ready.popleft()
        klass = int(problem.node_class[node])
        if choice[klass] != UNUSED:
            continue
        choice[klass] = node
        for parent in parents.get(klass, ()):
            missing_count[parent] -= 1
            if missing_count[parent] == 0:
                ready.append(parent)
    return choice


def _reached(problem: ExtractionProblem, owner: Ints, child: Ints) -> Mask:
    """Return which classes the root reaches over these edges, a breadth-first layer at a time."""
    source = problem.node_class[owner]
    order = np.argsort(source, kind="stable")
    target = child[order]
    starts = np.searchsorted(source[order], np.arange(problem.n_classes + 1))
    reached = np.zeros(problem.n_classes, dtype=np.bool_)
    reached[problem.root] = True
    last = np.empty(problem.n_classes, dtype=np.intp)
    layer = np.array([problem.root])
    while len(layer):
        counts = starts[layer + 1] - starts[layer]
        total = int(counts.sum())
        offsets = np.repeat(starts[layer] - (np.cumsum(counts) - counts), counts)
        frontier = target[offsets + np.arange(total)]
        frontier = frontier[~reached[frontier]]
        place = np.arange(len(frontier))
        last[frontier] = place
        layer = frontier[last[frontier] == place]  # each once: unique() is slow on small layers
        reached[layer] = True
    return reached


class Draft:
    """A :class:`Reduced` as lists that grow and shrink; e-node ids stay while it is drafted.

    Attributes:
        cost_us: per e-node, its cost.
        owner: per e-node, its class.
        children: per e-node, its child classes.
        members: per class, its e-nodes, oldest first.
        users: per class, the e-nodes that need it.
        alive: per e-node, whether it is still there.
        root: the root class.
    """

    def __init__(self, reduced: Reduced) -> None:
        problem = reduced.problem
        self._reduced = reduced
        self._origin: list[int] = reduced.node_origin.tolist()
        self._chains = list(reduced.chains)
        self.root = problem.root
        self.cost_us: list[float] = problem.cost_us.tolist()
        self.owner: list[int] = problem.node_class.tolist()
        self.children = list(child_sets(problem))
        self.members = [dict.fromkeys(part) for part in nodes_by_class(problem)]
        self.users = [dict.fromkeys(part) for part in parents_by_class(problem)]
        self.alive = [True] * problem.n_nodes

    def drop(self, node: int) -> None:
        """Take an e-node away."""
        self.alive[node] = False
        del self.members[self.owner[node]][node]
        for child in self.children[node]:
            del self.users[child][node]

    def merge(self, user: int, node: int) -> None:
        """Add an e-node to the class of ``user`` that is both: ``user`` with ``node`` in it.

        It needs what both need but the class of ``node``, and costs what both cost.
        """
        self.cost_us.append(self.cost_us[user] + self.cost_us[node])
        owner = self.owner[user]
        self.owner.append(owner)
        self.children.append((self.children[user] - {self.owner[node]}) | self.children[node])
        self._origin.append(self._joined(self._origin[user], self._origin[node]))
        self.alive.append(True)
        merged = len(self.owner) - 1
        self.members[owner][merged] = None
        for child in self.children[merged]:
            self.users[child][merged] = None

    def finish(self) -> Reduced:
        """Return what is there now; classes that the root does not reach are dropped."""
        reduced = self._reduced
        counts = np.array([len(part) for part in self.children], dtype=np.int64)
        flat = [child for part in self.children for child in sorted(part)]
        n_classes = reduced.problem.n_classes
        drafted = Reduced(
            problem=ExtractionProblem(
                cost_us=np.array(self.cost_us, dtype=np.float64),
                node_class=np.array(self.owner, dtype=np.int32),
                child_ptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
                child_idx=np.array(flat, dtype=np.int32),
                n_classes=n_classes,
                root=self.root,
                original=np.full(n_classes, UNUSED, dtype=np.int32),
            ),
            source=reduced.source,
            node_origin=np.array(self._origin, dtype=np.int32),
            class_origin=reduced.class_origin,
            fixed=reduced.fixed,
            chains=tuple(self._chains),
        )
        return keep(drafted, np.array(self.alive, dtype=np.bool_))

    def _joined(self, first: int, second: int) -> int:
        """Return the origin of an e-node that stands for what both origins stand for."""
        self._chains.append((*self._expanded(first), *self._expanded(second)))
        return self._reduced.source.n_nodes + len(self._chains) - 1

    def _expanded(self, origin: int) -> tuple[int, ...]:
        if origin == UNUSED:
            return ()
        n_source = self._reduced.source.n_nodes
        return (origin,) if origin < n_source else self._chains[origin - n_source]
