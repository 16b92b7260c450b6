"""A choice as text that finds its e-nodes again in another e-graph of the same model and rules.

An e-node is what its signature is, and the e-nodes of its children, which stand before it. Ids of e-nodes,
classes and signatures are an e-graph's own; where time ended exploration, those of a run that is repeated
are others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from relational_tensat.egraph.catalogue import Catalogue
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.enode_rows import CHILD_COLUMNS

#: Of an e-node: its class, its signature, and its children's classes, 0 for none.
_Row: TypeAlias = tuple[int, int, tuple[int, ...]]


def text_of_choice(egraph: EGraph, enodes: Sequence[int]) -> str:
    """Return chosen e-nodes as text: of each the hash of its signature, and the places of its children.

    Args:
        enodes: ids, one a class, children first.
    """
    rows, catalogue = _rows(egraph), egraph.catalogue
    place: dict[int, int] = {}
    written: list[list[str | int]] = []
    for enode in enodes:
        owner, signature, children = rows[enode]
        places = [place[child] for child in children if child]
        written.append([_digest(catalogue, signature), *places])
        place[owner] = len(written) - 1
    return json.dumps(written, separators=(",", ":"))


def find_choice(egraph: EGraph, text: str) -> tuple[int, ...] | None:
    """Return the e-nodes that a text says, children first; None where the e-graph lacks one."""
    catalogue = egraph.catalogue
    signature_of = {_digest(catalogue, s): s for s in range(1, len(catalogue.signatures) + 1)}
    enode_of = {
        (signature, children): (enode, owner)
        for enode, (owner, signature, children) in _rows(egraph).items()
    }
    found: list[tuple[int, int]] = []
    for digest, *places in json.loads(text):
        children = [found[place][1] for place in places]
        padded = (*children, *[0] * (CHILD_COLUMNS - len(children)))
        enode = enode_of.get((signature_of.get(digest, 0), padded))
        if enode is None:
            return None
        found.append(enode)
    return tuple(enode for enode, _ in found)


def _rows(egraph: EGraph) -> Mapping[int, _Row]:
    """Return the e-nodes that may be chosen, by id."""
    columns = egraph.database.columns("extract/nodes_by_signature")
    children = np.stack([columns[f"c{i}"] for i in range(CHILD_COLUMNS)], axis=1).tolist()
    heads = zip(*(columns[name].tolist() for name in ("id", "class", "signature")), strict=True)
    return {
        enode: (owner, signature, tuple(own))
        for (enode, owner, signature), own in zip(heads, children, strict=True)
    }


def _digest(catalogue: Catalogue, signature: int) -> str:
    """Return a hash of what a signature is: operator, attributes and types."""
    parts = (
        catalogue.symbol_of(signature),
        catalogue.operand_types(signature),
        catalogue.type_of(signature),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]
