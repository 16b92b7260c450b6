"""What a subgraph of a universe has, beside an e-graph of its own that the same rules were applied to."""

from __future__ import annotations

from typing import Any, TypeAlias

from relational_tensat.egraph import EGraph
from relational_tensat.egraph.catalogue import TableCounts
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.schema import create_tables
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.subgraph import Subgraph, begin_subgraph
from relational_tensat.tensor import Graph

#: An e-node as it is compared: signature and children, classes of the universe.
Key: TypeAlias = tuple[int, tuple[int, ...]]


def own_subgraph(
    graph: Graph, other: Subgraph, options: ExplorationOptions | None = None
) -> Subgraph:
    """Return an e-graph of its own with the rules of another, and signatures that begin with the other's.

    The ids of signatures are an order in which applications come.
    """
    known = other.egraph.catalogue
    egraph = EGraph(graph, Database())
    egraph.catalogue.restore(list(known.symbols), list(known.types), list(known.signatures), 0)
    egraph.catalogue.written = TableCounts()
    create_tables(egraph.database)
    egraph._load()
    return begin_subgraph(egraph, [compiled.rule for compiled in other.rules.rules], options)


def _signatures(own: EGraph, universe: EGraph) -> dict[int, int]:
    """Return which of a universe's signatures those of another e-graph are."""

    def spelled(egraph: EGraph) -> list[tuple[Any, ...]]:
        catalogue = egraph.catalogue
        numbers = range(1, len(catalogue.signatures) + 1)
        return [(catalogue.symbol_of(n), catalogue.operand_types(n)) for n in numbers]

    numbers = {each: number for number, each in enumerate(spelled(universe), 1)}
    return {n: numbers.get(each, 0) for n, each in enumerate(spelled(own), 1)}


def keys_of(own: EGraph, universe: EGraph) -> tuple[set[Key], dict[int, set[int]]]:
    """Return the e-nodes of an e-graph as those of a universe that has all of them, and its classes.

    An e-node is found once its operands are.
    """
    keys, owners, missing, above = partial_keys_of(own, universe)
    assert not missing, "an e-node that the subgraph does not have"
    assert not above
    return keys, owners


def partial_keys_of(
    own: EGraph, universe: EGraph
) -> tuple[set[Key], dict[int, set[int]], list[int], int]:
    """Return the same of a universe that may have some of them only.

    And the e-nodes that it has not although it has their operands, and how many are above those.
    """
    query = "SELECT id, class, signature, [c0, c1, c2, c3, c4] FROM enode"
    known = {
        (row[2], tuple(row[3])): row[1] for row in universe.connection.execute(query).fetchall()
    }
    rows, signatures = own.connection.execute(query).fetchall(), _signatures(own, universe)
    place: dict[int, int] = {0: 0}
    keys: set[Key] = set()
    missing: list[int] = []
    waiting = rows
    while waiting:
        later = []
        for row in waiting:
            enode, owner, signature, children = row
            if not all(child in place for child in children):
                later.append(row)
                continue
            key = (signatures[signature], tuple(place[child] for child in children))
            if key not in known:
                missing.append(enode)
                continue
            assert place.setdefault(owner, known[key]) == known[key], (
                "the universe is not congruent"
            )
            keys.add(key)
        if len(later) == len(waiting):
            assert missing
            break
        waiting = later
    owners: dict[int, set[int]] = {}
    for own_class, universe_class in place.items():
        owners.setdefault(universe_class, set()).add(own_class)
    return keys, owners, missing, len(waiting)


def assert_missing_explained(own: EGraph, missing: list[int], owners: dict[int, set[int]]) -> None:
    """Check that each e-node that only an e-graph of its own has was built for a pair of equal roots.

    What another subgraph knows to be one class is no pair of two.
    """
    united = {
        owner for own_classes in owners.values() if len(own_classes) > 1 for owner in own_classes
    }
    for enode in missing:
        rows = own.connection.execute(
            "SELECT a.parent, b.parent FROM union_log AS u JOIN rule AS r ON r.id = u.rule\n"
            "JOIN eclass AS a ON a.id = u.a JOIN eclass AS b ON b.id = u.b\n"
            "WHERE r.sources = 2 AND list_contains(u.bindings, $enode)",
            {"enode": enode},
        ).fetchall()
        assert any(not united.isdisjoint(row) for row in rows), enode


def extras(universe: EGraph, number: int, keys: set[Key]) -> list[tuple[int, int]]:
    """Return the e-nodes (id, application) that a subgraph has and an e-graph of its own has not."""
    rows = universe.connection.execute(
        "SELECT e.id, e.signature, [e.c0, e.c1, e.c2, e.c3, e.c4], m.application\n"
        "FROM subgraph_node AS m JOIN enode AS e ON e.id = m.enode\n"
        "WHERE m.subgraph = $subgraph ORDER BY m.place",
        {"subgraph": number},
    ).fetchall()
    return [(row[0], row[3]) for row in rows if (row[1], tuple(row[2])) not in keys]


def assert_explained(
    universe: EGraph, number: int, extra: list[tuple[int, int]], owners: dict[int, set[int]]
) -> None:
    """Check that each e-node that only the subgraph has is there by an equality of another subgraph.

    What its application bound, or its root, is two classes where the subgraph is alone, or has an e-node
    that is such an extra itself.
    """
    united = {universe_class for universe_class, own in owners.items() if len(own) > 1}
    extra_ids = [enode for enode, _ in extra]
    query = "SELECT DISTINCT class FROM enode WHERE id IN (SELECT unnest($ids))"
    united |= {row[0] for row in universe.connection.execute(query, {"ids": extra_ids}).fetchall()}
    for enode, application in extra:
        assert application
        rows = universe.connection.execute(
            "SELECT DISTINCT c.parent FROM (\n"
            "    SELECT unnest(roots || bindings) AS class FROM subgraph_application\n"
            "    WHERE subgraph = $subgraph AND id = $id\n"
            ") AS a JOIN eclass AS c ON c.id = a.class",
            {"subgraph": number, "id": application},
        ).fetchall()
        assert not united.isdisjoint(row[0] for row in rows), enode
