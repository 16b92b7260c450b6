"""Writing the e-graph of a run's database in the egraph-serialize format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from relational_tensat.base.errors import InputError
from relational_tensat.base.files import write_aside
from relational_tensat.egraph.enode_rows import CHILD_COLUMNS

_CHILDREN = [f"c{i}" for i in range(CHILD_COLUMNS)]


class TableSource(Protocol):
    """A run's database that answers the queries of ``sql/``."""

    def named(self, name: str, **params: Any) -> Any:
        """Run ``sql/NAME.sql``; the answer has ``as_objects()`` and ``rows``."""


def egraph_json(database: TableSource) -> dict[str, Any]:
    """Return the e-graph of a database in which an extraction was made.

    It has the e-nodes that extraction chooses from, at the costs that it charges (µs; e-nodes that depend
    on weights only are free), so that another extractor finds the same optimum.

    Raises:
        InputError: nothing was extracted yet: there are no costs.
    """
    rows = database.named("extract/extraction_nodes").as_objects()
    if not rows:
        raise InputError("no extraction was made in this database: its e-nodes have no costs")
    described = {row["id"]: row for row in database.named("egraph/enode_operators").as_objects()}
    oldest: dict[int, int] = {}
    types: dict[str, dict[str, str]] = {}
    for row in rows:
        oldest.setdefault(row["class"], row["id"])
        types.setdefault(str(row["class"]), {"type": described[row["id"]]["type"]})
    nodes = {
        str(row["id"]): {
            "op": _operator(described[row["id"]]),
            "children": [str(oldest[row[c]]) for c in _CHILDREN if row[c]],
            "eclass": str(row["class"]),
            "cost": row["cost_us"],
        }
        for row in rows
    }
    roots = [str(output) for _, output in database.named("egraph/output_classes").rows]
    return {
        "nodes": nodes,
        "root_eclasses": list(dict.fromkeys(roots)),
        "class_data": types,
    }


def save_egraph_json(content: dict[str, Any], path: Path) -> None:
    """Write what ``egraph_json`` returned to a file.

    Raises:
        InputError: the file cannot be written.
    """
    with write_aside(path) as folder, (folder / path.name).open("w", encoding="utf-8") as file:
        file.writelines(_parts(content))


def _parts(content: dict[str, Any]) -> Iterator[str]:
    """Yield the text of the file, an e-node or class a line: such files are read by people too."""
    for index, (field, value) in enumerate(content.items()):
        yield ("{\n" if index == 0 else ",\n") + f"{json.dumps(field)}: "
        if isinstance(value, dict):
            for place, (key, entry) in enumerate(value.items()):
                yield ("{\n" if place == 0 else ",\n") + f"{json.dumps(key)}: {json.dumps(entry)}"
            yield "\n}"
        else:
            yield json.dumps(value)
    yield "\n}\n"


def _operator(row: dict[str, Any]) -> str:
    attrs = json.loads(row["attrs"])
    shown = " ".join(f"{name}={json.dumps(value)}" for name, value in attrs.items())
    return f"{row['op']} {shown}".strip()
