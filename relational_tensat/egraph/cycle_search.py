"""The search for cycles among kept e-nodes, and for the e-nodes that are filtered to break them.

An e-node is filtered if, and only if, it closes a cycle with older ones that are kept. So what is filtered
depends on the ages of e-nodes alone, nothing is filtered without need, and the oldest e-node of a class
always stays: its operands are older than whatever has the class as an operand.

The labels of the classes are an order of what is kept already, and stay one as e-nodes are added (limited
search from both ends: Haeupler, Kavitha, Mathew, Sen and Tarjan 2012, "Incremental cycle detection,
topological ordering, and strong component maintenance", sections 2 and 3): an e-node above its children
closes no cycle; for another, only ways whose labels lie between its children's and its own are searched.

Only what lies in strongly connected components is looked at: cycles are nowhere else, components are few
and small even where thousands of labels are broken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush

import numpy as np

from relational_tensat.egraph.components import Ints, Places, cyclic_components
from relational_tensat.egraph.lifting import labelled


def cycle_breakers(columns: Mapping[str, Ints], check: Callable[[], None]) -> list[int]:
    """Return the e-nodes without which no cycle is left, the oldest first.

    Args:
        columns: the edges, one entry each: ``enode``, ``class`` and ``child``, and of these two classes
            ``height`` and ``child_height``.
        check: raises where the search is to end.
    """
    violates = columns["child_height"] >= columns["height"]
    component = cyclic_components(columns["class"], columns["child"], violates, check)
    inside = np.flatnonzero(component >= 0)
    by_age = inside[np.argsort(columns["enode"][inside], kind="stable")]
    edges = {name: column[by_age] for name, column in columns.items()}
    _, parent, child, labels = labelled(edges)
    kept = _Kept(labels.tolist(), check)
    return [
        enode
        for enode, owner, children in _grouped(edges["enode"], parent, child)
        if not kept.add(owner, children)
    ]


def _grouped(enode: Ints, parent: Places, child: Places) -> Iterator[tuple[int, int, list[int]]]:
    """Yield each e-node with its class and its children, from edges in the order of their e-nodes."""
    begins = np.flatnonzero(np.diff(enode, prepend=-1))
    ends = np.append(begins, len(enode))[1:].tolist()
    children = child.tolist()
    firsts = (enode[begins].tolist(), parent[begins].tolist(), begins.tolist(), ends)
    for number, owner, begin, end in zip(*firsts, strict=True):
        yield number, owner, children[begin:end]


class _Kept:
    """The e-nodes kept so far: which classes they lead to, and labels above those of all these.

    Args:
        labels: per class, by number; those of e-nodes to come need not fit.
    """

    def __init__(self, labels: list[int], check: Callable[[], None]) -> None:
        self._labels = labels
        self._check = check
        self._above: list[list[int]] = [[] for _ in labels]
        self._below: list[list[int]] = [[] for _ in labels]

    def add(self, owner: int, children: Sequence[int]) -> bool:
        """Keep an e-node of a class, unless it closes a cycle; return whether it is kept."""
        self._check()
        highest = max([self._labels[child] for child in children])
        if highest >= self._labels[owner]:
            if owner in children or self._leads_back(owner, children, highest):
                return False
            self._lift(owner, highest + 1)
        self._below[owner] += children
        for child in children:
            self._above[child].append(owner)
        return True

    def _leads_back(self, owner: int, children: Sequence[int], highest: int) -> bool:
        """Whether there is a way from one of the children to the class.

        Searched from both ends, a step here and a step there, until they meet or one end has nothing left.
        """
        labels, lowest = self._labels, self._labels[owner]
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

    def _lift(self, owner: int, label: int) -> None:
        """Lift a class to a label, and those above it as far as they must give way.

        The lowest goes first, by the labels there were: then none is lifted twice.
        """
        labels = self._labels
        wanted = {owner: label}
        heap = [(labels[owner], owner)]
        while heap:
            self._check()
            _, lifted = heappop(heap)
            label = labels[lifted] = wanted[lifted]
            for higher in self._above[lifted]:
                if labels[higher] <= label:
                    if higher not in wanted:
                        heappush(heap, (labels[higher], higher))
                    wanted[higher] = max(wanted.get(higher, 0), label + 1)
