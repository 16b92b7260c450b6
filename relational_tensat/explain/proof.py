"""The proof graph: all forms that e-nodes had in a run, and why they are one.

An e-node may have had many forms, each with reasons of its own. Were they one, a rule could seem to need
what it has made, and a way through it would never end. As it is, an edge needs only what was there before
it. A way between two forms that uses no edge later than the last that they need to be one does not come
back to itself. So egg explains, too (Flatt et al., "Small Proofs from Congruence Closure", FMCAD 2022).

The edges are ``applications`` of rules, as a run logged their unions. ``FormGraph`` has the forms: e-nodes
on the operands of their time, and the times when two became one.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NamedTuple

from relational_tensat.base.errors import InputError
from relational_tensat.base.files import sql
from relational_tensat.explain.egraph_tables import StoredEGraph, StoredNode
from relational_tensat.explain.laws import Congruence, Edge, Law, Laws, Side, Walk
from relational_tensat.rules.language import written_rule
from relational_tensat.rules.model import Rule


@dataclass(frozen=True, slots=True)
class Application:
    """A union that a rule requested.

    Attributes:
        output: which of the rule's sources is one with its target here.
        operands: per tensor variable of the rule, its class as it was called then.
        targets: the classes of what was built, as they were called then, padded to the longest target.
    """

    law: Law
    output: int
    operands: tuple[int, ...]
    targets: tuple[int, ...]


def applications(stored: StoredEGraph) -> Iterator[Application]:
    """Yield the unions in the order in which they were requested."""
    connection = stored.connection
    stored_rules = {
        rule_id: columns
        for rule_id, *columns in connection.execute(sql("explain/stored_rules")).fetchall()
    }

    @cache  # most rules of a run are never applied, and reading one is not free
    def read(rule: int) -> tuple[Rule, list[int], int]:
        text, name, file, line, operands, leaves = stored_rules[rule]
        return written_rule(text, name, file, line), [place - 1 for place in operands], leaves

    signatures = dict(connection.execute("SELECT id, signatures FROM instance_log").fetchall())
    laws = Laws(stored.signatures)
    laws_by_instance: dict[int, Law] = {}
    for rule, instance, output, bindings in connection.execute(sql("explain/reasons")).fetchall():
        written, places, leaves = read(rule)
        if instance not in laws_by_instance:
            laws_by_instance[instance] = laws.law(written, signatures[instance])
        operands = tuple([bindings[place] for place in places])
        yield Application(laws_by_instance[instance], output, operands, tuple(bindings[leaves:]))


_NEVER = float("inf")


class FormGraph:
    """A congruence closure that records when two forms became one.

    The union-find has no path compression. So the latest time on the way between two forms is the time
    since which they are one (Nieuwenhuis and Oliveras, "Fast congruence closure and extensions",
    Information and Computation 2007).

    Args:
        connect: is called with each congruence that is found.

    Attributes:
        signatures: of each form, its operator's.
        operands: of each form, the forms that it is computed from.
        time: how many unions there were so far, requested or by congruence. Each has a time of its own:
            a congruence may make two operands one that were one before, and comes after what it needs.
    """

    def __init__(self, connect: Callable[[Congruence], None]) -> None:
        self._connect = connect
        self.signatures: list[int] = []
        self.operands: list[tuple[int, ...]] = []
        self.time = 0
        self._form_of: dict[tuple[int, tuple[int, ...]], int] = {}
        #: A form of each signature on classes as they are now, by these classes' roots.
        self._congruent: dict[tuple[int, tuple[int, ...]], int] = {}
        #: The forms that are computed from a class, by its root.
        self._users: dict[int, list[int]] = defaultdict(list)
        self._parent: list[int] = []
        self._size: list[int] = []
        #: When a form got another one as its parent.
        self._joined: list[float] = []

    def form(self, signature: int, operands: tuple[int, ...]) -> int:
        """Return the form of a signature on forms; a new one is made one with what it is congruent to."""
        form = self._form_of.setdefault((signature, operands), len(self.operands))
        if form == len(self.operands):
            self.signatures.append(signature)
            self.operands.append(operands)
            self._parent.append(form)
            self._size.append(1)
            self._joined.append(_NEVER)
            for operand in set(map(self._root, operands)):
                self._users[operand].append(form)
            self._unite_congruent(self._congruences([form]))
        return form

    def unite(self, a: int, b: int) -> None:
        """Make two forms one, and then all that is congruent."""
        self._unite_congruent(self._unite(a, b))

    def one_since(self, a: int, b: int) -> float:
        """Return the time of the last union that two forms need to be one; infinity where they are not."""
        time = 0.0
        while a != b:
            if self._joined[a] > self._joined[b]:
                a, b = b, a
            if self._joined[a] == _NEVER:
                return _NEVER
            time = max(time, self._joined[a])
            a = self._parent[a]
        return time

    def _unite_congruent(self, pairs: list[tuple[int, int]]) -> None:
        while pairs:
            pair = pairs.pop()
            self._connect(Congruence(*pair, self.time + 1))
            pairs += self._unite(*pair)

    def _unite(self, a: int, b: int) -> list[tuple[int, int]]:
        """Make two forms one; return what is congruent by that."""
        self.time += 1
        small, large = sorted(map(self._root, (a, b)), key=self._size.__getitem__)
        if small == large:
            return []
        self._parent[small], self._joined[small] = large, self.time
        self._size[large] += self._size[small]
        users = self._users.pop(small, [])
        self._users[large] += users
        return self._congruences(users)

    def _congruences(self, forms: list[int]) -> list[tuple[int, int]]:
        """Return what forms are congruent to, after one of their operands has got another class."""
        found = []
        for form in forms:
            key = self.signatures[form], tuple(map(self._root, self.operands[form]))
            other = self._congruent.setdefault(key, form)
            if other != form:
                found.append((other, form))
        return found

    def _root(self, form: int) -> int:
        while self._parent[form] != form:
            form = self._parent[form]
        return form


class OriginalNode(NamedTuple):
    """A node of the original graph: its form, and its operands as they were numbered."""

    form: int
    children: tuple[int, ...]


class ProofGraph:
    """Forms and unions of a run.

    Attributes:
        nodes: per form, the e-node that it is in the end, with the form's number as its id.
        original: the nodes of the original graph by the numbers that they were given; operands first.
        edges: the unions that rules requested, in order.
        unions: these and those by congruence, in the order in which they came about.
    """

    def __init__(self, stored: StoredEGraph) -> None:
        self.stored = stored
        self._classes = dict(stored.connection.execute("SELECT id, parent FROM eclass").fetchall())
        self.edges: list[Edge] = []
        self.unions: list[Edge | Congruence] = []
        self._leaving: dict[int, list[Walk]] = defaultdict(list)
        self._forms = FormGraph(self._connect)
        #: Estimated steps from the first form of a class.
        self._far: dict[int, int] = {}
        self.original = self._read_original()
        #: The form that each class had first, by the number that it was given then.
        self._first = {name: node.form for name, node in self.original.items()}
        for application in applications(stored):
            self._add(application)
        self._enode_of, self.nodes = self._read_nodes()
        self._routes: dict[tuple[int, float], dict[int, Walk]] = {}

    @cached_property
    def members(self) -> dict[int, list[int]]:
        """The forms of each class."""
        members: dict[int, list[int]] = defaultdict(list)
        for form, node in self.nodes.items():
            members[node.owner].append(form)
        return members

    @cached_property
    def _forms_of(self) -> dict[int, list[int]]:
        """The forms of each e-node."""
        forms_of: dict[int, list[int]] = defaultdict(list)
        for form, enode in enumerate(self._enode_of):
            forms_of[enode].append(form)
        return forms_of

    def owner(self, form: int) -> int:
        """Return the class of a form."""
        return self.nodes[form].owner

    def enode(self, form: int) -> int:
        """Return the e-node that a form is in the end."""
        return self._enode_of[form]

    def operands(self, form: int) -> tuple[int, ...]:
        """Return the forms that a form is computed from."""
        return self._forms.operands[form]

    def first_form(self, enode: int) -> int:
        """Return the first form that an e-node had."""
        return self._forms_of[enode][0]

    def forms_of(self, enode: int) -> Sequence[int]:
        """Return all forms that an e-node had; none where no rule made it one."""
        return self._forms_of.get(enode, ())

    def nearest_form(self, enode: int, form: int) -> int:
        """Return the form of an e-node that was one with another form first."""
        return min(self._forms_of[enode], key=lambda other: self._forms.one_since(form, other))

    def next_walk(self, form: int, goal: int, banned: Collection[Walk] = ()) -> Walk | None:
        """Return the first edge on the shortest way to another form of the class; None without one.

        Args:
            banned: edges (and the way to walk them) not to be used.
        """
        time = self._forms.one_since(form, goal)
        if banned:
            return self._route(goal, time, banned).get(form)
        route = self._routes.get((goal, time))
        if route is None:
            route = self._routes[goal, time] = self._route(goal, time, ())
        return route.get(form)

    def _route(self, goal: int, time: float, banned: Collection[Walk]) -> dict[int, Walk]:
        """Return, per form of the class, the first edge on the shortest way to one of them (Dijkstra).

        Args:
            time: no later edge is used.
        """
        walks: dict[int, Walk] = {}
        steps = {goal: 0}
        queue = [(0, goal)]
        while queue:
            count, at = heapq.heappop(queue)
            if count > steps[at]:
                continue
            for neighbour, walk in self._arriving(at, goal):
                edge, forward = walk
                total = count + edge.steps[forward]
                is_shorter = total < steps.get(neighbour, total + 1)
                if is_shorter and edge.time <= time and walk not in banned:
                    steps[neighbour], walks[neighbour] = total, walk
                    heapq.heappush(queue, (total, neighbour))
        return walks

    def _arriving(self, form: int, goal: int) -> Iterator[tuple[int, Walk]]:
        """Yield the walks that end at a form and where they start."""
        for edge, forward in self._leaving[form]:
            yield (edge.end if forward else edge.start), (edge, not forward)
            is_any = isinstance(edge, Edge) and edge.root(False, edge.output) is None
            if forward and form == goal and is_any:
                for member in self.members[self.owner(form)]:  # any form may stand for the variable
                    if member not in (form, edge.end):
                        yield member, (edge, False)

    def _read_original(self) -> dict[int, OriginalNode]:
        nodes: dict[int, OriginalNode] = {}
        rows = self.stored.connection.execute(sql("egraph/original_nodes")).fetchall()
        for name, signature, children in rows:
            form = self._forms.form(signature, tuple([nodes[child].form for child in children]))
            nodes[name] = OriginalNode(form, tuple(children))
            self._far[form] = 0
        return nodes

    def _add(self, application: Application) -> None:
        law, names = application.law, application.operands
        operands = tuple([self._first[name] for name in names])
        source, target = (self._built(side, operands) for side in (law.source, law.target))
        for name, form in zip(application.targets, target, strict=False):
            self._first.setdefault(name, form)
        far, base, output = self._far, law.variables, application.output
        start, root = source[law.source.roots[output] - base], law.target.roots[output]
        end = target[root - base] if root >= base else operands[root]
        targets_below = [target[index] for index in law.target.below[output]]
        forward = 1 + sum(far[source[index]] for index in law.source.below[output])
        backward = 1 + sum(far.setdefault(form, 0) for form in targets_below)
        far.setdefault(end, far[start] + forward)
        classes = tuple([self._classes[name] for name in names])
        number, time = len(self.edges) + 1, self._forms.time + 1
        steps = backward, forward
        edge = Edge(law, classes, operands, output, source, target, start, end, steps, number, time)
        self.edges.append(edge)
        self._connect(edge)
        self._forms.unite(start, end)

    def _built(self, side: Side, operands: tuple[int, ...]) -> tuple[int, ...]:
        """Return the forms of a side's nodes."""
        forms = list(operands)
        for signature, children in side.nodes:
            forms.append(self._forms.form(signature, tuple([forms[child] for child in children])))
        return tuple(forms[side.variables :])

    def _connect(self, edge: Edge | Congruence) -> None:
        self.unions.append(edge)
        self._leaving[edge.start].append((edge, True))
        self._leaving[edge.end].append((edge, False))
        if isinstance(edge, Congruence):
            self._far.setdefault(edge.end, self._far.get(edge.start, 0))

    def _read_nodes(self) -> tuple[list[int], dict[int, StoredNode]]:
        """Return the e-nodes of all forms, and these as nodes.

        Raises:
            InputError: a form is no e-node, so the database is not what a run wrote.
        """
        known = {(node.signature, node.children): node for node in self.stored.nodes.values()}
        enodes: list[int] = []
        nodes: dict[int, StoredNode] = {}
        for form, operands in enumerate(self._forms.operands):
            owners = tuple([nodes[operand].owner for operand in operands])
            node = known.get((self._forms.signatures[form], owners))
            if node is None:
                raise InputError("an e-node that the log names is not in the database")
            enodes.append(node.id)
            nodes[form] = replace(node, id=form)
        return enodes, nodes
