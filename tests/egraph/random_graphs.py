"""Random small graphs over square tensors, and unions of random values of theirs."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from relational_tensat.egraph import EGraph
from relational_tensat.egraph.rebuild import RebuildReport, drop_equal, rebuild
from relational_tensat.egraph.schema import working_tables
from relational_tensat.tensor import Graph, Node, build_graph
from tests.graphs import f32

UNARY = ("relu", "tanh")
BINARY = ("add", "matmul")

#: Pairs of e-nodes (by their place among all, modulo their number) that are made equal at once.
Batch = list[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn, most_nodes: int = 14) -> Graph:
    """Graphs of unary and binary operators over two inputs; whatever is not used is returned."""
    names = ["x", "y"]
    nodes = []
    for number in range(draw(st.integers(2, most_nodes))):
        op = draw(st.sampled_from(UNARY + BINARY))
        count = 1 if op in UNARY else 2
        operands = tuple(draw(st.sampled_from(names)) for _ in range(count))
        nodes.append(Node(op, operands, (f"v{number}",)))
        names.append(f"v{number}")
    used_names = {name for node in nodes for name in node.inputs}
    inputs = dict.fromkeys(("x", "y"), f32(2, 2))
    outputs = [name for name in names if name not in used_names and name not in inputs]
    return build_graph("random", inputs, {}, nodes, outputs)


def batches(most: int = 3) -> st.SearchStrategy[list[Batch]]:
    """Batches of unions, one rebuild each."""
    pair = st.tuples(st.integers(0, 99), st.integers(0, 99))
    return st.lists(st.lists(pair, min_size=1, max_size=4), min_size=1, max_size=most)


def square_values(egraph: EGraph) -> list[int]:
    """Return the e-nodes, by their first ids, whose values are single tensors (not the root's)."""
    rows = egraph.connection.execute(
        "SELECT c.id FROM eclass AS c JOIN value_type AS t ON t.id = c.type"
        " WHERE t.type = 'float32[2,2]' ORDER BY c.id"
    )
    return [int(row[0]) for row in rows.fetchall()]


def pairs_of(batch: Batch, values: list[int]) -> list[tuple[int, int]]:
    """Return the pairs of ids that a batch means."""
    return [(values[i % len(values)], values[j % len(values)]) for i, j in batch]


def unite(egraph: EGraph, pairs: Iterable[tuple[int, int]], iteration: int = 1) -> RebuildReport:
    """Make classes equal as a phase of exploration does, in the name of rule 1, and rebuild."""
    database = egraph.database
    egraph.clock += 1
    working_tables()["union_pair"].create(database)
    canonical = {tuple(sorted((egraph.find(a), egraph.find(b)))) for a, b in pairs}
    unions = sorted(pair for pair in canonical if pair[0] != pair[1])
    if not unions:
        return RebuildReport()
    rows = [(0, 1, a, b) for a, b in unions]
    egraph.connection.executemany(
        "INSERT INTO union_pair (round, rule, a, b) VALUES (?, ?, ?, ?)", rows
    )
    report = rebuild(database, iteration=iteration, stamp=egraph.clock)
    egraph.e_nodes -= drop_equal(database) if report.has_equal else 0
    egraph.e_classes -= report.merged
    return report
