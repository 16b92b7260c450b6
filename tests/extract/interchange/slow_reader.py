"""The egraph-serialize format read the plain way, field by field: an oracle for the fast reader."""

from __future__ import annotations

import json
import sys
from typing import Any

#: Per e-node: name, operator, class, cost, names of the child classes.
Node = tuple[str, str, str, float, frozenset[str]]


def slow_nodes(text: str) -> list[Node] | None:
    """Return the e-nodes to extract from, or None where the file must be refused."""
    content = json.loads(text, object_pairs_hook=_unambiguous)
    if not isinstance(content, dict):
        return None
    nodes, roots = content.get("nodes"), content.get("root_eclasses")
    data = content.get("class_data", {})
    if not isinstance(nodes, dict) or not isinstance(roots, list) or not isinstance(data, dict):
        return None
    if not all(_is_node(node) for node in nodes.values()):
        return None
    classes = {str(node["eclass"]) for node in nodes.values()}
    kept = {name: node for name, node in nodes.items() if not node.get("subsumed", False)}
    if not roots or not all(map(_is_class, roots)) or not any(str(r) in classes for r in roots):
        return None
    if {str(node["eclass"]) for node in kept.values()} != classes:
        return None
    children = [child for node in kept.values() for child in node.get("children", [])]
    if not all(
        child in nodes if isinstance(child, str) else _is_class(child) and str(child) in classes
        for child in children
    ):
        return None
    return [
        (
            name,
            node["op"],
            str(node["eclass"]),
            float(node.get("cost", 1.0)),
            frozenset(
                str(nodes[child]["eclass"] if isinstance(child, str) else child)
                for child in node.get("children", [])
            ),
        )
        for name, node in kept.items()
    ]


def _is_class(name: Any) -> bool:
    return isinstance(name, str) or (isinstance(name, int) and not isinstance(name, bool))


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any] | None:
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) else None


def _is_node(node: Any) -> bool:
    if not isinstance(node, dict):
        return False
    if not isinstance(node.get("op"), str) or not _is_class(node.get("eclass")):
        return False
    if not isinstance(node.get("subsumed", False), bool):
        return False
    if node.get("subsumed", False):
        return True
    cost = node.get("cost", 1.0)
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        return False
    return abs(cost) <= sys.float_info.max and isinstance(node.get("children", []), list)
