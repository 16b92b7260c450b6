"""Labels are lifted as far as needed and no further: against plain recursion, on random e-graphs."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.egraph import EGraph
from relational_tensat.egraph.cycles import filter_cycles
from relational_tensat.tensor import Graph
from tests.egraph.random_graphs import Batch, batches, graphs, pairs_of, square_values, unite


def lowest_labels(edges: list[tuple[int, int]], height: dict[int, int]) -> dict[int, int]:
    """Return, per class, the lowest label that is not below its own and above all its children's."""

    def label(class_id: int) -> int:
        return max([height[class_id], *(label(b) + 1 for a, b in edges if a == class_id)])

    return {class_id: label(class_id) for class_id in height}


def labels_of(egraph: EGraph) -> dict[int, int]:
    return dict(egraph.connection.execute("SELECT id, height FROM eclass").fetchall())


@settings(max_examples=25, deadline=None)
@given(graphs(), batches(2), st.lists(st.integers(1, 15), min_size=1, max_size=7))
def test_labels_are_the_lowest_that_fit(
    graph: Graph, steps: list[Batch], heights: list[int]
) -> None:
    """Whatever the labels are before: also where two that are alike are violated at once."""
    egraph = EGraph.create(graph)
    for batch in steps:
        unite(egraph, pairs_of(batch, square_values(egraph)))
    filter_cycles(egraph.database)
    for number, class_id in enumerate(labels_of(egraph)):
        height = heights[number % len(heights)]
        egraph.connection.execute("UPDATE eclass SET height = ? WHERE id = ?", [height, class_id])
    before = labels_of(egraph)
    edges = egraph.connection.execute("SELECT DISTINCT class, child FROM kept_edge").fetchall()
    assert filter_cycles(egraph.database) == 0
    assert labels_of(egraph) == lowest_labels(edges, before)
    egraph.close()
