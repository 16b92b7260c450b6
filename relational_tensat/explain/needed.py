"""The backward slice of a result: the applications without which its e-nodes would not be there."""

from __future__ import annotations

from relational_tensat.base import duckdb
from relational_tensat.explain.proof import ProofGraph
from relational_tensat.explain.stored import StoredEGraph
from relational_tensat.explain.unions import Edge


def needed_unions(connection: duckdb.DuckDBPyConnection) -> list[int]:
    """Return the unions that a rule asked for and that the extracted graph goes back to.

    An e-node goes back to the application that built it first; that to the e-nodes that it was applied to;
    any of these to their operands. So they end at the original graph.

    Returns:
        Their places among the unions that rules asked for, from 1, in order.
    """
    graph = ProofGraph(StoredEGraph(connection))
    maker = _makers(graph)
    stack = [
        graph.first_form(enode)
        for (enode,) in connection.execute("SELECT enode FROM chosen").fetchall()
    ]
    seen: set[int] = set()
    needed: set[int] = set()
    while stack:
        form = stack.pop()
        if form in seen:
            continue
        seen.add(form)
        stack += graph.operands(form)
        edge = maker.get(form)
        if edge is not None and edge.number not in needed:
            needed.add(edge.number)
            stack += edge.source
    return sorted(needed)


def _makers(graph: ProofGraph) -> dict[int, Edge]:
    """Return the application that built each form first; none for what was there."""
    maker: dict[int, Edge] = {}
    known = {node.form for node in graph.original.values()}
    for edge in graph.edges:
        known.update(edge.source)
        for form in edge.target:
            if form not in known:
                known.add(form)
                maker[form] = edge
    return maker
