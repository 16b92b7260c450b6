"""E-graphs compared regardless of the ids that their classes and e-nodes have."""

from __future__ import annotations

from collections import Counter

from relational_tensat.egraph import EGraph


def canonical(egraph: EGraph) -> Counter[str]:
    """Return the classes, each as a digest of its e-nodes and of what is below them, as far as 12 steps.

    Two e-graphs with equal results have the same e-nodes in the same classes, for all that operators,
    types and the original values show. Whether an e-node is filtered makes no difference.
    """
    rows = egraph.connection.execute(
        "SELECT class, op, attrs, type, children FROM enode_text"
    ).fetchall()
    names = egraph.connection.execute(
        "SELECT c.parent, list(v.name ORDER BY v.name) FROM original_value AS v"
        " JOIN eclass AS c ON c.id = v.enode GROUP BY c.parent"
    ).fetchall()
    colour = {row[0]: "" for row in rows} | {class_id: str(members) for class_id, members in names}
    anchor = dict(colour)
    for _ in range(12):
        nodes: dict[int, list[str]] = {class_id: [] for class_id in colour}
        for class_id, op, attrs, kind, children in rows:
            below = [colour[child] for child in children]
            nodes[class_id].append(f"{op}{attrs}{kind}{below}")
        colour = {c: str(hash((anchor[c], *sorted(members)))) for c, members in nodes.items()}
    return Counter(colour.values())


def same(left: EGraph, right: EGraph) -> bool:
    """Whether two e-graphs are equal but for ids."""
    return left.counts() == right.counts() and canonical(left) == canonical(right)
