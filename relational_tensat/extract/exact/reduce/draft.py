"""An e-graph that is being rewritten e-node by e-node, for reductions that make new e-nodes."""

from __future__ import annotations

import numpy as np

from relational_tensat.extract.exact.reduce.reduced import Reduced, keep
from relational_tensat.extract.index import children_by_node, nodes_by_class, parents_by_class
from relational_tensat.extract.problem import UNUSED, ExtractionProblem


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
        self.children = [frozenset(part) for part in children_by_node(problem)]
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
