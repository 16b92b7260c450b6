"""How a graph is cut into blocks and windows."""

from __future__ import annotations

from relational_tensat.egraph import EGraph
from relational_tensat.explore.strategies.blocks.atoms import cut_into_atoms
from relational_tensat.explore.strategies.blocks.loaded import LoadedGraph
from relational_tensat.explore.strategies.blocks.partition import make_plan
from relational_tensat.models import GraphBuilder
from relational_tensat.models.bert import bert
from relational_tensat.models.resnet import resnet50
from relational_tensat.models.vit import vit_base
from relational_tensat.tensor import Graph
from tests.explore.strategies.blocks.models import chain


def loaded(graph: Graph) -> LoadedGraph:
    """Return a graph as it is loaded."""
    return LoadedGraph(EGraph.create(graph))


def test_atoms_are_cut_where_one_tensor_goes_through() -> None:
    graph = loaded(chain([["relu", "residual", "products"]]))
    ops = [[graph.op(number) for number in atom] for atom in cut_into_atoms(graph)]
    assert ops == [["relu"], ["matmul", "relu", "add"], ["matmul", "matmul", "add"]]


def test_equal_windows_are_of_one_kind() -> None:
    block = ["products", "residual"]
    plan = make_plan(loaded(chain([["relu"], *[block] * 5], tail=["relu", "relu"])), least_nodes=3)
    assert plan is not None
    assert (plan.blocks, plan.distinct) == (5, 1)
    assert [window.kind for window in plan.windows] == [0, 1, 1, 1, 1, 2]
    assert [window.kind for window in plan.kinds] == [0, 1, 2]


def test_windows_overlap_by_a_segment_and_cover_the_graph() -> None:
    graph = loaded(vit_base())
    plan = make_plan(graph)
    assert plan is not None
    assert (plan.blocks, plan.distinct, len(plan.kinds)) == (12, 1, 2)
    for one, other in zip(plan.windows, plan.windows[1:], strict=False):
        common = set(one.part.nodes) & set(other.part.nodes)
        assert common == {n for n in one.part.nodes if n > one.middle} != set()
    covered = {number for window in plan.windows for number in window.part.nodes}
    assert covered == {number for number in graph.nodes if not graph.is_leaf(number)}


def test_stages_of_a_resnet_are_runs_of_their_own() -> None:
    plan = make_plan(loaded(resnet50()), least_nodes=4)
    assert plan is not None
    assert plan.distinct > 1
    assert plan.blocks > plan.distinct


def test_outputs_on_the_way_do_not_keep_blocks_together() -> None:
    plan = make_plan(loaded(bert()))
    assert plan is not None
    assert (plan.blocks, plan.distinct) == (7, 1)  # the last layer's state is an output


def test_rules_must_not_join_what_no_window_has() -> None:
    """Scores that are returned do not depend on each other: a weight that they share may join them."""

    def scored(*, shared: bool) -> Graph:
        graph = GraphBuilder("scored")
        x, score = graph.input("x", 4, 4), graph.weight("score", 4, 4)
        returned = []
        for block in range(6):
            with graph.scope(f"block{block}"):
                x = graph.op("relu", graph.op("matmul", x, graph.weight("w", 4, 4)))
                own = score if shared else graph.weight("own", 4, 4)
                returned.append(graph.op("matmul", x, own))
        return graph.build(*returned, x)

    assert make_plan(loaded(scored(shared=False)), least_nodes=3) is not None
    assert make_plan(loaded(scored(shared=True)), least_nodes=3) is None


def test_nothing_recurs() -> None:
    assert make_plan(loaded(chain([["relu", "residual", "products"]]))) is None
