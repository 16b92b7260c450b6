"""What holds of subgraphs after every step: the queries of ``sql/invariants/subgraphs`` return no row."""

from __future__ import annotations

from relational_tensat.base.files import resource_dir
from relational_tensat.egraph import EGraph
from tests.egraph.invariants import broken_invariants

#: What is not in the subgraph that is shown is filtered: of a class that may be all there is.
HIDDEN = "class_without_kept_node"


def assert_subgraph_invariants(egraph: EGraph, subgraph: int) -> None:
    """Fail if something is broken in the universe, in a subgraph, or in how the given subgraph is shown."""
    broken = broken_invariants(egraph)
    broken.pop(HIDDEN, None)
    files = sorted((resource_dir("sql") / "invariants" / "subgraphs").glob("*.sql"))
    assert len(files) >= 4
    for path in files:
        rows = egraph.connection.execute(path.read_text(encoding="utf-8")).fetchall()
        if rows:
            broken[path.stem] = list(rows[:5])
    assert broken == {}
    assert (egraph.e_nodes, egraph.e_classes) == egraph.counts()
    members, shown = (
        members_of(egraph, subgraph),
        ids(egraph, "SELECT id FROM enode WHERE NOT filtered"),
    )
    assert shown <= members
    owners = "SELECT class FROM enode WHERE id IN (SELECT unnest($ids))"
    assert classes(egraph, owners, members) == classes(egraph, owners, shown)


def members_of(egraph: EGraph, subgraph: int) -> set[int]:
    """Return the e-nodes of a subgraph."""
    return ids(egraph, f"SELECT enode FROM subgraph_node WHERE subgraph = {subgraph}")


def ids(egraph: EGraph, query: str) -> set[int]:
    """Return the numbers of a query's first column."""
    return {int(row[0]) for row in egraph.connection.execute(query).fetchall()}


def classes(egraph: EGraph, query: str, enodes: set[int]) -> set[int]:
    """Return the classes of e-nodes."""
    rows = egraph.connection.execute(query, {"ids": sorted(enodes)}).fetchall()
    return {int(row[0]) for row in rows}
