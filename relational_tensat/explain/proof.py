"""The proof graph: all e-nodes of a run, and every union that a rule requested as an edge.

Two e-nodes are in one class because a chain of such unions connects them. Congruence needs no edges,
since here e-nodes are distinguished by the classes that their operands have *in the end*.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

from relational_tensat.base.errors import InputError
from relational_tensat.base.resources import sql
from relational_tensat.explain.laws import Law, Laws, Side
from relational_tensat.explain.stored import StoredEGraph
from relational_tensat.rules.text import written_rule


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """A union that a rule requested.

    Attributes:
        operands: per tensor variable of the rule, its class.
        output: which of the rule's sources is one with its target here.
        source, target: the e-nodes that are the nodes of the law's two sides.
        start, end: the e-nodes that the union connects. Where the rule's target is a variable, the end
            is one that the variable's class had then.
        steps: an estimate of how many steps it takes to walk it backward and forward.
    """

    law: Law
    operands: tuple[int, ...]
    output: int
    source: tuple[int, ...]
    target: tuple[int, ...]
    start: int
    end: int
    steps: tuple[int, int]

    def side(self, forward: bool) -> tuple[Side, tuple[int, ...]]:
        """Return the side that must be there to walk the edge that way, and its e-nodes."""
        return (self.law.source, self.source) if forward else (self.law.target, self.target)

    def root(self, forward: bool, output: int) -> int | None:
        """Return the e-node of a root of the side where the walk starts; None where it is a variable."""
        side, enodes = self.side(forward)
        index = side.roots[output] - side.variables
        return enodes[index] if index >= 0 else None


class OriginalNode(NamedTuple):
    """An e-node of the original graph: what it is now, and its operands as they were numbered."""

    enode: int
    children: tuple[int, ...]


#: A way to walk an edge; True is from the rule's source to its target.
Walk: TypeAlias = tuple[Edge, bool]


class ProofGraph:
    """E-nodes and unions of a run.

    Attributes:
        nodes: all e-nodes.
        original: the e-nodes of the original graph by the numbers that they were given; operands first.
        edges: in the order in which the unions were requested.
    """

    def __init__(self, stored: StoredEGraph) -> None:
        self.stored = stored
        self.nodes = stored.nodes
        self._enode_of = {(n.signature, n.children): n.id for n in self.nodes.values()}
        connection = stored.connection
        self._parents = dict(connection.execute("SELECT id, parent FROM eclass").fetchall())
        self.original = {
            name: OriginalNode(
                self.enode(signature, tuple([self._parents[child] for child in children])),
                tuple(children),
            )
            for name, signature, children in connection.execute(
                sql("egraph/original_nodes")
            ).fetchall()
        }
        #: An e-node that each class had when it was made, by the number that it was given then.
        self._first_enodes = {name: node.enode for name, node in self.original.items()}
        #: Estimated steps from the first e-node of a class.
        self._far = {node.id: 0 for node in self.nodes.values() if node.iteration == 0}
        self.edges = list(self._read_edges())
        self._leaving: dict[int, list[Walk]] = defaultdict(list)
        for edge in self.edges:
            self._leaving[edge.start].append((edge, True))
            self._leaving[edge.end].append((edge, False))
        self._routes: dict[int, dict[int, Walk]] = {}

    @cached_property
    def members(self) -> dict[int, list[int]]:
        """The e-nodes of each class."""
        members: dict[int, list[int]] = defaultdict(list)
        for node in self.nodes.values():
            members[node.owner].append(node.id)
        return members

    def owner(self, enode: int) -> int:
        """Return the class of an e-node."""
        return self.nodes[enode].owner

    def enode(self, signature: int, children: tuple[int, ...]) -> int:
        """Return the e-node of a signature on classes.

        Raises:
            InputError: there is none, so the database is not what a run wrote.
        """
        enode = self._enode_of.get((signature, children))
        if enode is None:
            raise InputError("an e-node that the log names is not in the database")
        return enode

    def next_walk(self, enode: int, goal: int, banned: Collection[Walk] = ()) -> Walk | None:
        """Return the first edge on the shortest way to another e-node of the class; None without one.

        Args:
            banned: edges (and the way to walk them) not to be used.
        """
        if banned:
            return self._route(goal, banned).get(enode)
        route = self._routes.get(goal)
        if route is None:
            route = self._routes[goal] = self._route(goal, ())
        return route.get(enode)

    def _route(self, goal: int, banned: Collection[Walk]) -> dict[int, Walk]:
        """Return, per e-node of the class, the first edge on the shortest way to one of them (Dijkstra)."""
        walks: dict[int, Walk] = {}
        steps = {goal: 0}
        queue = [(0, goal)]
        while queue:
            count, at = heapq.heappop(queue)
            if count > steps[at]:
                continue
            for neighbour, walk in self._arriving(at, goal):
                total = count + walk[0].steps[walk[1]]
                if walk not in banned and total < steps.get(neighbour, total + 1):
                    steps[neighbour], walks[neighbour] = total, walk
                    heapq.heappush(queue, (total, neighbour))
        return walks

    def _arriving(self, enode: int, goal: int) -> Iterator[tuple[int, Walk]]:
        """Yield the walks that end at an e-node and where they start."""
        for edge, forward in self._leaving[enode]:
            yield (edge.end if forward else edge.start), (edge, not forward)
            if forward and enode == goal and edge.root(False, edge.output) is None:
                for member in self.members[
                    self.owner(enode)
                ]:  # any form may stand for the variable
                    if member not in (enode, edge.end):
                        yield member, (edge, False)

    def _read_edges(self) -> Iterator[Edge]:
        connection = self.stored.connection
        rules = {
            rule_id: (
                written_rule(text, name, file, line),
                [place - 1 for place in operands],
                leaves,
            )
            for rule_id, text, name, file, line, operands, leaves in connection.execute(
                sql("explain/stored_rules")
            ).fetchall()
        }
        signatures = dict(connection.execute("SELECT id, signatures FROM instance_log").fetchall())
        laws = Laws(self.stored.signatures)
        laws_by_instance: dict[int, Law] = {}
        for rule, instance, output, bindings in connection.execute(
            sql("explain/reasons")
        ).fetchall():
            rule_text, places, leaves = rules[rule]
            if instance not in laws_by_instance:
                laws_by_instance[instance] = laws.law(rule_text, signatures[instance])
            operands = [bindings[place] for place in places]
            yield self._edge(laws_by_instance[instance], output, operands, bindings[leaves:])

    def _edge(self, law: Law, output: int, operands: list[int], targets: list[int]) -> Edge:
        """Return the edge of a union.

        Args:
            operands, built: classes of the rule's variables and of what it built, as they were called.
        """
        classes = tuple([self._parents[name] for name in operands])
        source = self._enodes(law.source, classes)
        target = self._enodes(law.target, classes)
        for name, enode in zip(targets, target, strict=False):  # padded to the longest target
            self._first_enodes.setdefault(name, enode)
        far, base = self._far, law.variables
        sources_below, targets_below = (
            [enodes[value - base] for value in side.below(side.roots[output])]
            for side, enodes in ((law.source, source), (law.target, target))
        )
        forward = 1 + sum(far.get(enode, 0) for enode in sources_below)
        for enode in targets_below:
            far.setdefault(enode, 0)
        backward = 1 + sum(far[enode] for enode in targets_below)
        start, root = source[law.source.roots[output] - base], law.target.roots[output]
        end = target[root - base] if root >= base else self._first_enodes[operands[root]]
        far.setdefault(end, far.get(start, 0) + forward)
        return Edge(law, classes, output, source, target, start, end, (backward, forward))

    def _enodes(self, side: Side, operands: tuple[int, ...]) -> tuple[int, ...]:
        classes = list(operands)
        enodes = []
        for signature, children in side.nodes:
            enode = self.enode(signature, tuple([classes[child] for child in children]))
            enodes.append(enode)
            classes.append(self.owner(enode))
        return tuple(enodes)
