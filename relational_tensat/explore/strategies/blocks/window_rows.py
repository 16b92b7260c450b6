"""What was found in the windows: rows of their e-graph, each with the window that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from relational_tensat.explore.strategies.blocks.representative import Representative

#: What belongs to all windows (constants, and what is computed from them), and what is between them.
SHARED, BETWEEN = -1, -2


class WindowsMet(Exception):  # noqa: N818  # a control signal, not an error
    """Something was found that belongs to two windows: it cannot be copied."""


@dataclass(frozen=True, slots=True, eq=False)
class WindowRows:
    """Rows of a representative's e-graph, without the leaves and operators that stand for its outside.

    Attributes:
        root: by class (of those that there ever were), the class that it has become.
        height: by class, the label of the class that it has become.
        owner: by class, the kind of its window, or ``SHARED``, or ``BETWEEN``.
        nodes: (id, class, signature, c0 to c4, iteration, rule, filtered).
        unions: (rule, a, b, instance, source, bindings) in their order.
    """

    root: dict[int, int]
    height: dict[int, int]
    owner: dict[int, int]
    nodes: list[tuple[Any, ...]]
    unions: list[tuple[Any, ...]]

    def owner_of(self, classes: Iterable[int]) -> int:
        """Return the window that classes belong to (0 is no class).

        Raises:
            WindowsMet: there are several, or something between two is among the classes.
        """
        owners = {self.owner[class_id] for class_id in classes if class_id} - {SHARED}
        if len(owners) > 1 or BETWEEN in owners:
            raise WindowsMet
        return owners.pop() if owners else SHARED


def read_rows(representative: Representative) -> WindowRows:
    """Return what an explored representative has.

    Raises:
        WindowsMet: something belongs to two windows.
    """
    database = representative.egraph.database
    classes = database.execute(
        "-- classes of the windows\n"
        "SELECT c.id, c.parent, root.height FROM eclass AS c JOIN eclass AS root ON root.id = c.parent"
    )
    root = {class_id: parent for class_id, parent, _ in classes}
    inside = {class_id for placed in representative.placed for class_id in placed.nodes}
    inside.update(representative.constants.values())
    rows = database.execute(
        "-- e-nodes of the windows\n"
        "SELECT id, class, signature, c0, c1, c2, c3, c4, iteration, rule, filtered FROM enode ORDER BY id"
    )
    nodes = [row for row in rows if row[0] > representative.last or row[0] in inside]
    unions = database.execute(
        "-- unions of the windows\n"
        "SELECT rule, a, b, instance, source, bindings FROM union_log ORDER BY rowid"
    )
    owner_of_root = _owners(representative, root, nodes)
    owner = {class_id: owner_of_root[parent] for class_id, parent in root.items()}
    return WindowRows(
        root, {class_id: height for class_id, _, height in classes}, owner, nodes, unions
    )


def _owners(
    representative: Representative, root: dict[int, int], nodes: list[tuple[Any, ...]]
) -> dict[int, int]:
    """Return the window of each canonical class: of what it was there, and of its e-nodes' operands."""
    owner = dict.fromkeys(root.values(), SHARED)
    shared = set(representative.constants.values())
    for class_id in range(1, representative.last + 1):
        if class_id not in shared:
            owner[root[class_id]] = BETWEEN
    for placed in representative.placed:
        for class_id in (*placed.nodes, *placed.free):
            owner[root[class_id]] = SHARED

    def claim(class_id: int, kind: int) -> bool:
        at = root[class_id]
        if kind in (SHARED, owner[at]):
            return False
        if owner[at] != SHARED:
            raise WindowsMet
        owner[at] = kind
        return True

    for kind, placed in enumerate(representative.placed):
        for class_id in (*placed.nodes, *placed.free):
            claim(class_id, kind)
    claimed = True
    while claimed:
        claimed = False
        for row in nodes:
            for child in row[3:8]:
                if child:
                    claimed |= claim(row[1], owner[child])
    return owner
