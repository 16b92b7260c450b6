"""Which nodes of an ONNX graph compute sizes."""

from __future__ import annotations

from relational_tensat.formats.onnx_sizes import size_nodes
from tests.formats.dynamic.models import attention, mlp, reshaped


def test_what_depends_on_shapes_and_constants_alone_computes_sizes() -> None:
    assert size_nodes(mlp().graph) == []
    found = [node.op_type for node in size_nodes(reshaped(["batch", "seq", 2, 4]).graph)]
    assert found == ["Shape", "Gather", "Gather", "Concat"]


def test_rows_taken_at_computed_positions_do_too_but_not_those_at_ids() -> None:
    """Both are Gather: of a constant at places that sizes say, and at places that are an input."""
    found = [node.output[0] for node in size_nodes(attention().graph)]
    assert {"positions", "place", "apart", "together"} <= set(found)
    assert not {"token", "x", "mask_float", "penalty", "y"} & set(found)
