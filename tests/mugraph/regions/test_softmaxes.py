"""Regions with what puts 0 in place of NaN, as exports of attention have it behind softmaxes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from relational_tensat.base.errors import ShapeError
from relational_tensat.mugraph.fusion.candidates import Candidate, region_candidates
from relational_tensat.mugraph.fusion.nodes_check import computes_nodes
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.regions.finding_regions import find_regions
from relational_tensat.mugraph.regions.lowering_regions import lowered
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from tests.mugraph.masks import guarded_model
from tests.mugraph.regions.test_regions import compare
from tests.mugraph.verify.test_masks import with_operator


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


def chosen(kind: str) -> Graph:
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
    model = chosen(kind)
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


def whole() -> Candidate:
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
