"""Slices, parts, borders, transposes, reshapes, and what is there twice: what the rules save."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relational_tensat.cost import load_profile
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize
from relational_tensat.tensor import AttrValue, Graph, Node, TensorType, Weight, build_graph
from tests.graphs import f32
from tests.rules.families import PLAIN, check_family, graph, node, optimized


def cut(x: str, output: str, axis: int, start: int, end: int, step: int = 1) -> Node:
    """Return a slice along one axis."""
    bounds: dict[str, AttrValue] = {
        "axes": (axis,), "starts": (start,), "ends": (end,), "steps": (step,)
    }  # fmt: skip
    return node("slice", x, output, **bounds)


#: Name, families, graph, operators left at inference, a rule that made the result.
CASES: list[tuple[str, str, Graph, dict[str, int], str]] = [
    (
        "three equal slices are a split",
        "slice",
        graph({"x": (5, 12)}, {},
              [cut("x", "a", 1, 0, 4), cut("x", "b", 1, 4, 8), cut("x", "c", 1, 8, 12),
               node("relu", "a", "p"), node("tanh", "b", "q"), node("exp", "c", "r")], "p q r"),
        {"relu": 1, "tanh": 1, "exp": 1, "split": 1},
        "neighbouring-slices-are-parts",
    ),
    (
        "four equal slices are a split",
        "slice",
        graph({"x": (5, 12)}, {},
              [cut("x", "a", 1, 0, 3), cut("x", "b", 1, 3, 6), cut("x", "c", 1, 6, 9),
               cut("x", "d", 1, 9, 12), node("add", "a c", "p"), node("sub", "b d", "q")], "p q"),
        {"add": 1, "sub": 1, "split": 1},
        "slice-is-equal-part",
    ),
    (
        "two uneven slices are parts of one split",
        "slice",
        graph({"x": (5, 12)}, {},
              [cut("x", "a", 1, 1, 4), cut("x", "b", 1, 4, 9), node("relu", "a", "p"),
               node("tanh", "b", "q")], "p q"),
        {"relu": 1, "tanh": 1, "split": 1},
        "neighbouring-slices-are-parts",
    ),
    (
        "slices of slices of any step",
        "slice",
        graph({"x": (5, 24)}, {},
              [cut("x", "a", 1, 1, 24, 2), cut("a", "b", 1, 2, 11, 3), cut("b", "c", 0, 1, 4),
               cut("c", "y", 1, 1, 3)]),
        {"slice": 1},
        "slice-twice",
    ),
    (
        "slice within one of three joined tensors",
        "slice identity",
        graph({"x": (5, 4), "y1": (5, 6), "z": (5, 3)}, {},
              [node("concat", "x y1 z", "c", axis=1), cut("c", "y", 1, 5, 9)]),
        {"slice": 1},
        "slice-behind-first-of-3",
    ),
    (
        "slice that keeps one joined tensor and drops the others",
        "slice identity",
        graph({"a": (2, 3), "b": (2, 4), "c": (2, 5), "d": (2, 6)}, {},
              [node("concat", "a b c d", "e", axis=1), cut("e", "f", 1, 7, 12),
               node("relu", "f", "y")]),
        {"relu": 1},
        "drop-whole-slice",
    ),
    (
        "slice before what moves or borders the whole",
        "slice identity",
        graph({"x": (4, 6, 8)}, {},
              [node("pad", "x", "p", pads=(0, 0, 2, 0, 0, 2)),
               node("transpose", "p", "t", perm=(2, 0, 1)), cut("t", "y", 0, 2, 10)]),
        {"transpose": 1},
        "slice-within-pad",
    ),
    (
        "part of a part",
        "slice identity",
        graph({"x": (5, 12)}, {},
              [node("split", "x", "a b", axis=1, sizes=(4, 8)),
               node("split", "b", "c d", axis=1, sizes=(3, 5)), node("relu", "c", "p"),
               node("tanh", "d", "q")], "p q"),
        {"relu": 1, "tanh": 1, "split": 1},
        "part-of-part",
    ),
    (
        "index of one is a slice, and that is of the columns of the weights",
        "slice layout",
        graph({"x": (3, 5)}, {"w": (5, 8), "i": Weight(TensorType("int64", ()), np.array(-1))},
              [node("matmul", "x w", "m"), node("gather", "m i", "y", axis=1)]),
        {"matmul": 1},
        "slice-of-columns",
    ),
    (
        "channels of a convolution are a smaller convolution",
        "slice",
        graph({"x": (1, 4, 6, 6)}, {"w": (8, 4, 3, 3), "b": (8,)},
              [node("conv", "x w b", "c", **PLAIN), cut("c", "y", 1, 2, 5)]),
        {"conv": 1},
        "slice-of-biased-channels",
    ),
    (
        "two borders are one, and move behind what keeps zeros",
        "pad",
        graph({"x": (4, 6)}, {},
              [node("pad", "x", "p", pads=(0, 1, 0, 1)), node("relu", "p", "r"),
               node("smul", "r", "s", value=2.0), node("pad", "s", "y", pads=(1, 0, 1, 0))]),
        {"relu": 1, "smul": 1, "pad": 1},
        "pad-twice",
    ),
    (
        "borders of both operands are one",
        "pad",
        graph({"x": (4, 6), "z": (4, 6)}, {},
              [node("pad", "x", "p", pads=(0, 1, 0, 1)), node("pad", "z", "q", pads=(0, 1, 0, 1)),
               node("sub", "p q", "y")]),
        {"sub": 1, "pad": 1},
        "pad-after-sum",
    ),
    (
        "a border with a value through clip and transposes",
        "pad layout",
        graph({"x": (4, 6)}, {},
              [node("transpose", "x", "t", perm=(1, 0)),
               node("pad", "t", "p", pads=(0, 1, 0, 1), value=7.0),
               node("clip", "p", "c", min=0.0, max=6.0), node("transpose", "c", "y", perm=(1, 0))]),
        {"pad": 1, "clip": 1},
        "pad-after-clip",
    ),
    (
        "transposes around a sum with a row, a number and an activation",
        "layout",
        graph({"x": (2, 3, 4, 5)}, {"b": (3,), "s": (1,)},
              [node("transpose", "x", "t", perm=(0, 2, 3, 1)), node("add", "t b", "a"),
               node("sub", "s a", "u"), node("relu", "u", "r"),
               node("transpose", "r", "y", perm=(0, 3, 1, 2))]),
        {"add": 1, "sub": 1, "relu": 1},
        "operand-before-transpose-right",
    ),
    (
        "transposes around a sum with a large operand",
        "layout",
        graph({"x": (3, 4, 5), "z": (5, 4, 3)}, {},
              [node("transpose", "x", "t", perm=(2, 1, 0)), node("add", "z t", "a"),
               node("transpose", "a", "y", perm=(2, 1, 0))]),
        {"transpose": 1, "add": 1},
        "transposes-cancel-around-second-of-pair",
    ),
    (
        "parts of a transpose, moved back",
        "layout",
        graph({"x": (3, 4, 5)}, {},
              [node("transpose", "x", "t", perm=(2, 1, 0)),
               node("split", "t", "a b", axis=2, sizes=(1, 2)),
               node("transpose", "a", "p", perm=(2, 1, 0)),
               node("transpose", "b", "q", perm=(2, 1, 0)), node("relu", "p", "r"),
               node("tanh", "q", "s")], "r s"),
        {"relu": 1, "tanh": 1, "split": 1},
        "part-of-transpose",
    ),
    (
        "reshapes stand in nobody's way",
        "layout fusion concat",
        graph({"x": (6, 4)}, {"u": (4, 8), "v": (4, 8), "b": (8,)},
              [node("matmul", "x u", "p"), node("matmul", "x v", "q"),
               node("reshape", "p", "c", shape=(2, 3, 8)), node("add", "c b", "d"),
               node("reshape", "q", "e", shape=(2, 3, 8)), node("concat", "d e", "y", axis=0)]),
        {"matmul": 2, "concat": 1},
        "row-before-reshape",
    ),
    (
        "channels of flattened images",
        "layout fusion",
        graph({"x": (2, 4, 3, 5)}, {"w": (6, 4, 1, 1), "b": (6, 1)},
              [node("conv", "x w", "c", **PLAIN), node("reshape", "c", "r", shape=(2, 6, 15)),
               node("add", "r b", "y")]),
        {"conv": 1},
        "channels-before-reshape",
    ),
    (
        "casts that lose nothing on the way",
        "identity",
        graph({"x": (3,)}, {},
              [node("cast", "x", "a", dtype="float64"), node("cast", "a", "b", dtype="float32"),
               node("relu", "b", "y")]),
        {"relu": 1},
        "drop-cast-to-own-type",
    ),
    (
        "a cast that drops fractions stays",
        "identity",
        graph({"x": (3,)}, {},
              [node("cast", "x", "a", dtype="int8"), node("cast", "a", "y", dtype="float32")]),
        {"cast": 2},
        "",
    ),
    (
        "layers that are there twice are one, without any rule",
        "identity",
        graph({"x": (3, 4)}, {"w": (4, 4)},
              [node("matmul", "x w", "a"), node("relu", "a", "b"), node("matmul", "x w", "c"),
               node("relu", "c", "d"), node("add", "b d", "y")]),
        {"matmul": 1, "relu": 1, "add": 1},
        "",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("families", "made", "left", "rule"), [c[1:] for c in CASES],
                         ids=[c[0] for c in CASES])  # fmt: skip
def test_operators_that_are_left(
    families: str, made: Graph, left: dict[str, int], rule: str
) -> None:
    check_family(made, families, left, rule)


def test_the_last_token_alone_is_computed() -> None:
    """A slice of rows goes through bias, activation and both products down to the input."""
    made = graph({"x": (1, 128, 256)}, {"u": (256, 512), "b": (512,), "v": (512, 1000)},
                 [node("matmul", "x u", "a"), node("add", "a b", "c"), node("relu", "c", "d"),
                  node("matmul", "d v", "e"), cut("e", "y", 1, 127, 128)])  # fmt: skip
    result = optimized(made, "slice fusion layout", load_profile("t4"))
    assert [n.op for n in result.graph.nodes] == ["slice", "matmul", "matmul"]
    assert result.graph.types["y"] == f32(1, 1, 1000)
    assert result.cost_after_us < 0.5 * result.cost_before_us


def test_a_row_that_widens_a_reshape_stays_behind_it() -> None:
    """Fuzzing: a row of 4 behind a reshape to [2, 4, 1] makes [2, 4, 4], not what is before it."""
    nodes = [Node("reshape", ("x",), ("a",), {"shape": (2, 4, 1)}), Node("add", ("a", "b"), ("y",))]
    original = build_graph("wide", {"x": f32(2, 4), "b": f32(4)}, {}, nodes, ["y"])
    options = Options.of(rules=(Path("rules/layout.rules"),))
    assert optimize(original, options).graph.output_types() == original.output_types()
