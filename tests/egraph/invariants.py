"""What must hold of every e-graph: the queries of ``sql/invariants`` return no row."""

from __future__ import annotations

from pathlib import Path

from relational_tensat.base.files import resource_dir
from relational_tensat.egraph import EGraph

#: Invariants that only a cycle filter establishes.
ACYCLIC_ONLY = frozenset({"class_without_kept_node", "cycles", "height_labels"})


def invariant_files() -> list[Path]:
    """Return the files of all invariants, by name."""
    return sorted((resource_dir("sql") / "invariants").glob("*.sql"))


def broken_invariants(egraph: EGraph, cycle_filter: str = "efficient") -> dict[str, list[object]]:
    """Return the rows that speak against each invariant that does not hold, by its name."""
    broken: dict[str, list[object]] = {}
    for path in invariant_files():
        if cycle_filter == "none" and path.stem in ACYCLIC_ONLY:
            continue
        rows = egraph.connection.execute(path.read_text(encoding="utf-8")).fetchall()
        if rows:
            broken[path.stem] = rows[:5]
    return broken


def assert_invariants(egraph: EGraph, cycle_filter: str = "efficient") -> None:
    """Fail if an invariant is broken, or if the e-graph's counters are not what the tables say."""
    assert broken_invariants(egraph, cycle_filter) == {}
    assert (egraph.e_nodes, egraph.e_classes) == egraph.counts()
    ((last,),) = egraph.connection.execute("SELECT max(id) FROM eclass").fetchall()
    assert egraph.next_id == last + 1
