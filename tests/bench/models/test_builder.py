from __future__ import annotations

import pytest

from bench.models import GraphBuilder
from relational_tensat.base.errors import ModelError, ShapeError, UsageError
from relational_tensat.tensor import TensorType


def test_names_follow_scopes_and_count_operators() -> None:
    builder = GraphBuilder("small")
    x = builder.input("x", 2, 3)
    with builder.scope("layer1"), builder.scope("query"):
        weight = builder.weight("weight", 3, 4)
        y = builder.op("matmul", x, weight)
        first = builder.op("relu", y)
        second = builder.op("relu", first)
    assert weight == "layer1.query.weight"
    assert (y, first, second) == (
        "layer1.query.matmul", "layer1.query.relu", "layer1.query.relu_2",
    )  # fmt: skip
    graph = builder.build(second)
    assert graph.types[y] == TensorType("float32", (2, 4))
    assert [node.outputs[0] for node in graph.nodes] == [y, first, second]


def test_an_equal_expression_is_the_same_value() -> None:
    builder = GraphBuilder("small")
    x = builder.input("x", 1, 2, 4, 4)
    pooled = builder.op("avg_pool", x, kernel=(3, 3), stride=(1, 1), pad="same")
    with builder.scope("elsewhere"):
        again = builder.op("avg_pool", x, kernel=(3, 3), stride=(1, 1), pad="same", act="none")
        other = builder.op("avg_pool", x, kernel=(3, 3), stride=(2, 2), pad="same")
    assert again == pooled
    assert other != pooled
    total = builder.op("add", builder.op("relu", pooled), builder.op("relu", again))
    counts = builder.build(total, other).count_ops()
    assert counts == {"avg_pool": 2, "add": 1, "relu": 1}


def test_a_name_can_be_given_once_in_a_scope() -> None:
    builder = GraphBuilder("small")
    builder.input("x", 2, 2)
    with pytest.raises(ModelError, match="small: the value 'x' is defined twice"):
        builder.weight("x", 2, 2)
    with builder.scope("inner"):
        assert builder.weight("x", 2, 2) == "inner.x"


def test_operands_that_do_not_fit_are_refused_at_once() -> None:
    builder = GraphBuilder("small")
    x = builder.input("x", 2, 3)
    with pytest.raises(ShapeError):
        builder.op("matmul", x, x)
    with pytest.raises(UsageError, match="did you mean 'matmul'"):
        builder.op("matmull", x, x)


def test_a_scope_ends_with_its_block_also_after_an_error() -> None:
    builder = GraphBuilder("small")
    with pytest.raises(UsageError), builder.scope("broken"):
        builder.op("no_such_operator")
    assert builder.input("x", 1) == "x"


def test_a_tuple_has_no_shape() -> None:
    builder = GraphBuilder("small")
    both = builder.op("noop", builder.input("x", 1), builder.input("y", 2))
    with pytest.raises(ShapeError, match="tuple of 2 tensors"):
        builder.shape(both)
