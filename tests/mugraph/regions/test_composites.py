"""Regions with what puts 0 in place of NaN, as exports of attention have it behind softmaxes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from relational_tensat.base.errors import ShapeError
from relational_tensat.mugraph.fusion.candidates import KernelCandidate, region_candidates
from relational_tensat.mugraph.fusion.kernel_builder import computes_nodes
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.residues import Residues
from relational_tensat.mugraph.graph.rewrites import core
from relational_tensat.mugraph.kernel_finder import find_kernels
from relational_tensat.mugraph.regions.node_programs import lowered
from relational_tensat.mugraph.regions.regions import find_regions
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.verify.verification import bound, verify_mugraph
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from tests.mugraph.conditions import causal_model, given_model, sliced_model
from tests.mugraph.masks import guarded_model
from tests.mugraph.regions.test_regions import compare
from tests.mugraph.verify.test_masks import with_operator

TENSOR = TensorType("float32", (4, 8))


def chosen(*nodes: Node) -> Graph:
    """Return a model of nodes that end in z."""
    numbers = {
        name: Weight(TensorType("float32", ()), np.asarray(value, "float32"))
        for name, value in (("half", 0.5), ("two", 2.0), ("inf", np.inf), ("nothing", -np.inf))
    }
    kinds = {"x": TENSOR, "y": TENSOR, "row": TensorType("float32", (8,))}
    kinds["given"] = TensorType("bool", (4, 8))
    read = {name for node in nodes for name in node.inputs}
    weights = {name: weight for name, weight in numbers.items() if name in read}
    inputs = {name: kind for name, kind in kinds.items() if name in read}
    return build_graph("chosen", inputs, weights, nodes, ["z"])


LESS, MORE = Node("less", ("x", "row"), ("c",)), Node("less", ("half", "y"), ("d",))


@pytest.mark.parametrize(
    "nodes",
    [
        (LESS, Node("where", ("c", "x", "y"), ("z",))),
        (LESS, Node("where", ("c", "half", "y"), ("z",))),
        (LESS, Node("where", ("c", "y", "nothing"), ("z",))),
        (LESS, Node("where", ("c", "half", "two"), ("z",))),
        (LESS, Node("where", ("c", "half", "nothing"), ("z",))),
        (LESS, Node("where", ("c", "inf", "two"), ("z",))),
        (Node("less_or_equal", ("x", "half"), ("c",)), Node("where", ("c", "x", "y"), ("z",))),
        (Node("equal", ("half", "x"), ("c",)), Node("where", ("c", "y", "x"), ("z",))),
        (LESS, Node("logical_not", ("c",), ("n",)), Node("where", ("n", "x", "y"), ("z",))),
        (
            LESS,
            MORE,
            Node("logical_and", ("c", "d"), ("b",)),
            Node("where", ("b", "x", "y"), ("z",)),
        ),
        (
            LESS,
            MORE,
            Node("logical_or", ("c", "d"), ("b",)),
            Node("where", ("b", "x", "y"), ("z",)),
        ),
    ],
)
def test_what_is_chosen_is_the_models(nodes: tuple[Node, ...]) -> None:
    model = chosen(*nodes)
    with np.errstate(invalid="ignore"):
        compare(model, list(model.nodes))


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        (
            (
                Node("exp", ("x",), ("e",)),
                Node("less", ("e", "y"), ("c",)),
                Node("where", ("c", "x", "y"), ("z",)),
            ),
            "less of a computed value, which rounding may decide otherwise",
        ),
        ((LESS, Node("where", ("c", "inf", "nothing"), ("z",))), "two infinite numbers"),
    ],
)
def test_others_end_a_region_and_a_row_says_why(nodes: tuple[Node, ...], reason: str) -> None:
    model = chosen(*nodes)
    with pytest.raises(ShapeError, match=reason):
        lowered(model, model.nodes, "region")
    regions, rows = find_regions(model)
    assert not any("z" in region.outputs and region.nodes == len(nodes) for region in regions)
    assert any(reason in row.reason for row in rows)


FIRST_ROW = {"axes": (0,), "starts": (1,), "ends": (2,), "steps": (1,)}
GIVEN = Node("where", ("given", "x", "y"), ("z",))


@pytest.mark.parametrize(
    "nodes",
    [
        (GIVEN,),
        (Node("where", ("given", "half", "nothing"), ("z",)),),
        (Node("where", ("given", "x", "nothing"), ("z",)),),
        (Node("logical_not", ("given",), ("n",)), Node("where", ("n", "x", "y"), ("z",))),
        (
            LESS,
            Node("logical_or", ("c", "given"), ("b",)),
            Node("where", ("b", "x", "half"), ("z",)),
        ),
        (
            Node("reshape", ("given",), ("flat",), {"shape": (32,)}),
            Node("reshape", ("flat",), ("again",), {"shape": (4, 8)}),
            Node("where", ("again", "x", "y"), ("z",)),
        ),
        (
            Node("cast", ("given",), ("numbers",), {"dtype": "float32"}),
            Node("mul", ("numbers", "x"), ("z",)),
        ),
        (
            Node("slice", ("given",), ("one",), FIRST_ROW),
            Node("where", ("one", "x", "y"), ("z",)),
        ),
    ],
)  # fmt: skip
def test_conditions_that_are_given_are_read(nodes: tuple[Node, ...]) -> None:
    model = chosen(*nodes)
    with np.errstate(invalid="ignore"):
        compare(model, list(model.nodes))
    program = lowered(model, model.nodes, "region").program
    assert len(program.conditions) == 1


def test_a_condition_that_a_region_cannot_compute_is_read() -> None:
    """What makes bools of numbers stays outside, and its result is read."""
    nodes = [
        Node("cast", ("x",), ("c",), {"dtype": "bool"}),
        Node("where", ("c", "x", "y"), ("z",)),
        Node("mul", ("z", "y"), ("r",)),
    ]
    model = build_graph("outside", {"x": TENSOR, "y": TENSOR}, {}, nodes, ["r"])
    candidates = [c for c in region_candidates(model, 9) if c.outputs == ("r",)]
    largest = max(candidates, key=lambda one: len(one.nodes))
    assert [node.op for node in largest.nodes] == ["where", "mul"]
    assert "c" in largest.inputs and len(largest.program.conditions) == 1
    assert computes_nodes(largest, 1)
    (border,) = [row for row in find_regions(model)[1] if row.fate == "border"]
    assert border.operators == ("cast",) and "a cast to bool is no operator" in border.reason


@pytest.mark.parametrize("is_added", [True, False])
def test_attention_with_a_mask_that_is_given_is_one_kernel(is_added: bool) -> None:
    model = given_model(is_added=is_added)
    candidate = max(region_candidates(model, 9), key=lambda one: len(one.nodes))
    assert len(candidate.nodes) == len(model.nodes) and computes_nodes(candidate, 1)
    turned = tuple(
        replace(step, attrs={"value": 0.0}) if step.op == "keep" else step
        for step in candidate.program.operators
    )
    wrong = replace(candidate.program, steps=turned)
    assert not computes_nodes(replace(candidate, program=wrong), 1)


def test_a_part_of_bools_is_a_window() -> None:
    model = sliced_model()
    candidate = max(region_candidates(model, 9), key=lambda one: len(one.nodes))
    assert len(candidate.nodes) == 3 and computes_nodes(candidate, 1)
    alone = core(candidate.program)
    assert len(alone.conditions) == 1 and alone.conditions.isdisjoint(candidate.program.conditions)


def test_attention_with_a_computed_mask_is_one_kernel() -> None:
    """Rows of which the mask leaves nothing are among those compared: NaN, as the model has it."""
    model = causal_model()
    ((found, *_), _) = find_regions(model)
    assert found.nodes == len(model.nodes)
    best = find_kernels(found.program, SearchOptions(max_kernels=1, max_operators=8)).best
    assert best is not None and bound(found.program) is None
    verification = verify_mugraph(found.program, best.graph, 9)
    assert verification.passed and verification.is_stable and verification.error is None
    wrong = with_operator(best.graph, "less", "less_or_equal")
    assert not verify_mugraph(found.program, wrong, 9).passed


def test_a_program_is_compared_with_its_nodes_also_where_nothing_is_left() -> None:
    candidate = max(region_candidates(causal_model(), 9), key=lambda one: len(one.nodes))
    assert len(candidate.nodes) == 5 and computes_nodes(candidate, 1)
    turned = tuple(
        replace(s, operands=s.operands[::-1]) if s.op == "less" else s
        for s in candidate.program.operators
    )
    wrong = replace(candidate.program, steps=turned)
    assert not computes_nodes(replace(candidate, program=wrong), 1)


def test_nothing_holds_because_of_what_residues_are() -> None:
    """keep(c, x) + y is not keep(c, x + y), and a comparison not one of sums."""
    field = Residues(3)
    x, y, c = (field.draw((64,), seed) for seed in range(3))
    one = field.add(field.kept(c, x, -0.0), y)
    assert not np.array_equal(one, field.kept(c, field.add(x, y), -0.0))
    assert not np.array_equal(field.compared("less", x, y), field.compared("less", y, x))
    both = field.compared("less", field.add(x, c), field.add(y, c))
    assert not np.array_equal(field.compared("less", x, y), both)
    assert not np.array_equal(field.compared("less", x, 1.0), field.compared("less", x, 2.0))


def operators(program: MuGraph) -> list[str]:
    return [step.op for step in program.operators]


def test_a_softmax_with_0_for_nan_is_a_quotient_that_is_0() -> None:
    model = guarded_model()
    compare(model, list(model.nodes))
    program = lowered(model, model.nodes, "region").program
    assert operators(program) == ["matmul", "add", "exp", "sum", "div_or_zero", "matmul"]
    ((found, *_), _) = find_regions(model)
    assert found.nodes == len(model.nodes)


def test_of_another_value_it_is_a_function() -> None:
    model = guarded_model()
    region = lowered(model, model.nodes[3:], "region")
    assert operators(region.program) == ["nan_to_zero", "matmul"] and region.inputs == (
        "weights",
        "v",
    )


def kept_finite(kind: str) -> Graph:
    """Return a model that chooses something else than 0 in place of NaN."""
    floats = TensorType("float32", (4, 8))
    zero = Weight(TensorType("float32", ()), np.asarray(0.0, "float32"))
    operands = {
        "another value": ("is", "zero", "y"), "itself": ("is", "x", "zero"), "a tensor": ("is", "y", "x"),
    }[kind]  # fmt: skip
    nodes = [
        Node("is_nan", ("x",), ("is",)),
        Node("where", operands, ("z",)),
        Node("exp", ("z",), ("r",)),
    ]
    return build_graph("chosen", {"x": floats, "y": floats}, {"zero": zero}, nodes, ["r"])


@pytest.mark.parametrize("kind", ["another value", "itself", "a tensor"])
def test_other_choices_end_a_region(kind: str) -> None:
    model = kept_finite(kind)
    with pytest.raises(ShapeError, match=r"where .* is no operator of μGraphs"):
        lowered(model, model.nodes, "region")
    ((region,), rows) = find_regions(model)
    assert region.nodes == 2 and region.program.conditions == {
        "in0"
    }  # which reads whether it is NaN
    assert any(row.fate == "border" and "where" in row.reason for row in rows)


def test_another_number_for_nan_ends_a_region() -> None:
    model = guarded_model(guard=1.0)
    with pytest.raises(ShapeError, match="where but to put 0 in place of NaN"):
        lowered(model, model.nodes, "region")


def whole() -> KernelCandidate:
    """Return all of the model as a candidate."""
    candidates = region_candidates(guarded_model(), 8)
    return max(candidates, key=lambda candidate: len(candidate.nodes))


def test_a_program_is_compared_with_its_nodes_where_masks_leave_nothing() -> None:
    """With random masks none is -inf: NaN for 0 is seen with those only."""
    candidate = whole()
    assert len(candidate.nodes) == 6 and not candidate.is_cast
    assert computes_nodes(candidate, 1)
    wrong = replace(candidate, program=with_operator(candidate.program, "div_or_zero", "div"))
    assert not computes_nodes(wrong, 1)
