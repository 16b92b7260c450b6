"""The cycle filter: keep the e-graph of unfiltered e-nodes acyclic (TENSAT section 5.2).

Every class has a height label above those of its kept children. Where labels are violated, a recursive
CTE lifts them (``cycles/lift.sql``). On a cycle they would rise for ever. So where they do not converge
soon, the edges that may lie on cycles are collected (``cycles/core.sql``). Of these, an e-node that
closes a cycle with older ones is filtered: the original graph always stays. Recursive CTEs find these
e-nodes, too (``cycles/break.sql``), unless the classes are many: then a search in Python does.

An e-node is filtered if, and only if, it closes a cycle with older ones that are kept. So the ages of
e-nodes alone decide. Nothing is filtered without need, and the oldest e-node of a class always stays. Its
operands are older than whatever has the class as an operand.

In the search, the labels of the classes are an order of the kept e-nodes, and stay one as e-nodes are
added. An e-node above its children closes no cycle. For another, only ways whose labels lie between its
children's and its own are searched (limited search from both ends: Haeupler, Kavitha, Mathew, Sen and
Tarjan 2012, "Incremental cycle detection, topological ordering, and strong component maintenance", sections
2 and 3). Only the core that cycles may lie in is searched: it is small even where thousands of labels are
broken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from relational_tensat.egraph.database import Database
from relational_tensat.egraph.enode_rows import Ints, Places, distinct

#: How often edges that lead to an end are removed: the rest costs little more.
_MOST_ROUNDS = 32


def cyclic_core(
    parent: Ints, child: Ints, suspect: NDArray[np.bool_], check: Callable[[], None]
) -> Places:
    """Return the places of the edges that may lie on a cycle: all that do, and few others.

    They lie below and above edges that every cycle has one of. Nodes of these that lead to an end or come
    from one are removed, and again until none is left to remove.

    Args:
        parent, child: the edges of a graph.
        suspect: the edges of which every cycle has one.
        check: raises where the search is to end.
    """
    nodes, above, below = _edge_places(parent, child)
    check()
    down = _reachable(above, below, below[suspect], len(nodes), check)
    up = _reachable(below, above, above[suspect], len(nodes), check)
    core = down & up
    inside = np.flatnonzero(core[above] & core[below])
    for _ in range(_MOST_ROUNDS):
        check()
        has_above = np.bincount(below[inside], minlength=len(nodes)) > 0
        has_below = np.bincount(above[inside], minlength=len(nodes)) > 0
        core = has_above & has_below
        edges = core[above[inside]] & core[below[inside]]
        if edges.all():
            break
        inside = inside[edges]
    return inside


def _edge_places(parent: Ints, child: Ints) -> tuple[Ints, Places, Places]:
    """Return the nodes of a graph's edges, in order, and the places among them of the edges' ends."""
    nodes, flat = np.unique(np.concatenate([parent, child]), return_inverse=True)
    above, below = np.split(flat, 2)
    return nodes, above, below


def _reachable(
    source: Places, target: Places, start: Places, nodes: int, check: Callable[[], None]
) -> NDArray[np.bool_]:
    """Return which nodes can be reached along edges from ``source`` to ``target``."""
    edges = Adjacency(source, target, nodes)
    reached = np.zeros(nodes, dtype=np.bool_)
    front = distinct(start)
    while len(front):
        check()
        reached[front] = True
        _, following = edges.following(front)
        front = distinct(following[~reached[following]])
    return reached


class Adjacency:
    """The targets of each source, one list after the other (``targets``), and where each begins."""

    def __init__(self, source: Places, target: Places, nodes: int) -> None:
        self.pointer = np.zeros(nodes + 1, dtype=np.intp)
        np.cumsum(np.bincount(source, minlength=nodes), out=self.pointer[1:])
        self.targets = target[np.argsort(source, kind="stable")]

    def following(self, front: Places) -> tuple[Places, Places]:
        """Return the edges from some nodes: their sources and their targets."""
        starts = self.pointer[front]
        counts = self.pointer[front + 1] - starts
        first = np.repeat(starts - np.cumsum(counts) + counts, counts)
        return np.repeat(front, counts), self.targets[first + np.arange(len(first))]


def break_cycles(columns: Mapping[str, Ints], check: Callable[[], None]) -> list[int]:
    """Return which e-nodes to leave out, so that no cycle is left, the oldest first.

    Args:
        columns: the edges, one entry each: ``enode``, ``class`` and ``child``, and of these two classes
            ``height`` and ``child_height``.
        check: raises where the search is to end.
    """
    violates = columns["child_height"] >= columns["height"]
    core = cyclic_core(columns["class"], columns["child"], violates, check)
    check()
    by_age = core[np.argsort(columns["enode"][core], kind="stable")]
    edges = {name: column[by_age] for name, column in columns.items()}
    check()
    classes, parent, child = _edge_places(edges["class"], edges["child"])
    labels = np.zeros(len(classes), dtype=np.int64)
    labels[parent], labels[child] = edges["height"], edges["child_height"]
    check()
    acyclic = _AcyclicPart(labels.tolist(), check)
    return [
        enode
        for enode, owner, children in _grouped(edges["enode"], parent, child)
        if not acyclic.add(owner, children)
    ]


def _grouped(enode: Ints, parent: Places, child: Places) -> Iterator[tuple[int, int, list[int]]]:
    """Yield each e-node with its class and its children, from edges in the order of their e-nodes."""
    starts = np.flatnonzero(np.diff(enode, prepend=-1))
    stops = np.append(starts, len(enode))[1:].tolist()
    children = child.tolist()
    firsts = (enode[starts].tolist(), parent[starts].tolist(), starts.tolist(), stops)
    for enode_id, owner, start, stop in zip(*firsts, strict=True):
        yield enode_id, owner, children[start:stop]


class _AcyclicPart:
    """The e-nodes kept so far, and which classes they lead to.

    Attributes:
        labels: per class, by place; lifted as far as e-nodes that are kept need it.
    """

    def __init__(self, labels: list[int], check: Callable[[], None]) -> None:
        self.labels = labels
        self._check = check
        self._above: list[list[int]] = [[] for _ in labels]
        self._below: list[list[int]] = [[] for _ in labels]

    def add(self, owner: int, children: Sequence[int]) -> bool:
        """Keep an e-node of a class, unless it closes a cycle; return whether it is kept."""
        self._check()
        labels = self.labels
        highest = max([labels[child] for child in children])
        if highest >= labels[owner]:
            if owner in children:
                return False
            if self._above[owner]:  # else there is no way to it, and none to lift above it
                if self._leads_back(owner, children, highest):
                    return False
                self._lift_above(owner, highest + 1)
            labels[owner] = highest + 1
        self._below[owner] += children
        for child in children:
            self._above[child].append(owner)
        return True

    def _leads_back(self, owner: int, children: Sequence[int], highest: int) -> bool:
        """Whether there is a way from one of the children to the class.

        Searched from both ends, a step here and a step there, until they meet or one end has nothing left.
        """
        labels, lowest = self.labels, self.labels[owner]
        down = [child for child in children if labels[child] > lowest]
        up = [owner]
        from_children, from_owner = set(down), {owner}
        while down and up:
            self._check()
            for lower in self._below[down.pop()]:
                if lower in from_owner:
                    return True
                if labels[lower] > lowest and lower not in from_children:
                    from_children.add(lower)
                    down.append(lower)
            for higher in self._above[up.pop()]:
                if higher in from_children:
                    return True
                if labels[higher] < highest and higher not in from_owner:
                    from_owner.add(higher)
                    up.append(higher)
        return False

    def _lift_above(self, owner: int, label: int) -> None:
        """Lift the classes above one that gets a label, as far as they must give way.

        The lowest goes first, by the labels there were: then none is lifted twice.
        """
        labels, above = self.labels, self._above
        labels_to_be = {owner: label}
        heap = [(labels[owner], owner)]
        while heap:
            self._check()
            _, lifted = heappop(heap)
            label = labels[lifted] = labels_to_be[lifted]
            for higher in above[lifted]:
                if labels[higher] <= label:
                    if higher not in labels_to_be:
                        heappush(heap, (labels[higher], higher))
                    labels_to_be[higher] = max(labels_to_be.get(higher, 0), label + 1)


#: Gap between the labels of a node and its operands in the original graph. Rewritten forms of a class
#: fit below it without lifting the classes above.
HEIGHT_STEP = 4096

#: Rounds in which labels converge, as a rule, without a cycle: e-graphs of the 13 models take 1 to 19, most
#: of them below 8. Where there is one, these rounds are in vain (32 of them: 6 ms more each).
_FEW_ROUNDS = 12

#: More rounds than there are classes in any e-graph.
_ALL_ROUNDS = 2**31 - 1

#: Of so many edges that may lie on a cycle, those between different strong components are dropped first.
_MANY_EDGES = 300

#: Up to so many edges, statements find the e-nodes to filter. The ways between classes are as many as the
#: square of these; dropping those between strong components alone took 20 times the search of 10,000.
MOST_BY_STATEMENTS = 3_000


def filter_cycles(database: Database, subgraph: int = 0) -> int:
    """Filter e-nodes until the kept ones are acyclic; return how many were filtered.

    Args:
        subgraph: of whose e-nodes, whose ages are when they came into it; 0 for all, by when they were
            made.
    """
    with database.stopwatch.phase("filter cycles"):
        if _lift(database, _FEW_ROUNDS):
            return 0
        edges = database.change("cycles/core")
        by_statements = edges <= MOST_BY_STATEMENTS
        if by_statements and edges > _MANY_EDGES:
            edges -= database.change("cycles/shrink")
        filtered = 0
        if edges:
            if subgraph:
                database.run("subgraphs/core_ages", subgraph=subgraph)
            filtered = _break(database) if by_statements else _break_by_search(database)
        _lift(database, _ALL_ROUNDS)
        return filtered


def _lift(database: Database, rounds: int) -> bool:
    """Raise labels to the lowest above those of all children; return whether so many rounds sufficed."""
    ((converged, _),) = database.run("cycles/lift", rounds=rounds)
    return bool(converged)


def _break(database: Database) -> int:
    """Filter the e-nodes that close cycles, by statements; return how many."""
    total = 0
    while True:
        ((filtered, undecided),) = database.run("cycles/break")
        total += int(filtered)
        if filtered == undecided:
            return total


def _break_by_search(database: Database) -> int:
    """Filter the e-nodes that close cycles, by a search; return how many."""
    edges = database.columns("cycles/core_edges")
    ages = break_cycles(edges, database.check_interrupt)
    if ages:
        database.run("cycles/filter_cycles", ages=ages)
    return len(ages)


def reject_cyclic_applications(database: Database, leaves: int, rules: str, roots: int = 2) -> int:
    """Drop the rows of ``application`` that would close a cycle; return how many.

    Args:
        leaves: how many of an application's bindings are each of its matches'.
        rules: the names of the rules in the statement's first comment.
        roots: how many columns of roots, and of matches, there are.
    """
    text = f"-- suspect: {rules}\n{suspects_text(leaves, roots)}"
    with database.stopwatch.phase("filter cycles"):
        ((suspects,),) = database.execute(text, name="suspect")
        return database.change("cycles/reject_cyclic") if suspects else 0


def suspects_text(leaves: int, roots: int = 2) -> str:
    """Return the statement that fills ``suspect``: applications that may close a cycle, by heights.

    An application puts its roots above its variables. That closes no cycle if all variables of one match
    lie lower than the roots of the others. It is so for most. Class ids are dense, so that a list of all
    heights answers at once what a join for each variable would. Of rules with fewer sources than others, a
    root is 0 and has no height.

    Args:
        leaves: how many of an application's bindings are each of its matches'.
        roots: how many columns of roots, and of matches, there are.
    """
    every = range(roots)
    slices = [range(n * leaves + 1, (n + 1) * leaves + 1) for n in every]
    tops = [f"greatest({', '.join(f'height_of[b[{i}]]' for i in places)})" for places in slices]
    columns = [
        *(f"m{n}" for n in every),
        *(f"root{n}" for n in every),
        *(f"height_of[root{n}] AS height{n}" for n in every),
    ]
    pairs = list(permutations(every, 2))
    may_close = " OR ".join(f"top{one} >= height{other}" for one, other in pairs)
    suspected = [
        f"SELECT id, m{one}, root{other}, b[{slices[one].start}:{slices[one].stop - 1}], height{other}"
        f" FROM suspected WHERE top{one} >= height{other}"
        for one, other in pairs
    ]
    return (
        "-- applications that may close a cycle, by the heights of their roots and variables\n"
        "CREATE OR REPLACE TEMP TABLE suspect AS\n"
        "WITH suspected AS MATERIALIZED (\n"
        "    SELECT * FROM (\n"
        f"        SELECT\n            id, b, {', '.join(columns)},\n            "
        + ",\n            ".join(f"{top} AS top{n}" for n, top in enumerate(tops))
        + "\n        FROM application, (SELECT list(height ORDER BY id) AS height_of FROM eclass)\n"
        "    )\n"
        f"    WHERE {may_close}\n"
        "),\n"
        "pair(id, match, root, leaves, lowest) AS (\n    "
        + "\n    UNION ALL\n    ".join(suspected)
        + "\n)\nFROM pair"
    )
