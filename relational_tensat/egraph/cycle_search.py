"""The search for cycles among kept e-nodes, and for the e-nodes that are filtered to break them.

An e-node is filtered if, and only if, it closes a cycle with older ones that are kept. So what is filtered
depends on the ages of e-nodes alone, nothing is filtered without need, and the oldest e-node of a class
always stays: its operands are older than whatever has the class as an operand.

The labels of the classes are an order of what is kept already, and stay one as e-nodes are added (limited
search from both ends: Haeupler, Kavitha, Mathew, Sen and Tarjan 2012, "Incremental cycle detection,
topological ordering, and strong component maintenance", sections 2 and 3): an e-node above its children
closes no cycle; for another, only ways whose labels lie between its children's and its own are searched.

Only the core that cycles may lie in is searched: it is small even where thousands of labels are broken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush

import numpy as np

from relational_tensat.egraph.edges import cyclic_core, edge_places
from relational_tensat.egraph.node_hashes import Ints, Places


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
    classes, parent, child = edge_places(edges["class"], edges["child"])
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
