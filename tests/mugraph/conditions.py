"""Models and μGraphs that choose by conditions which they compute, and what NumPy makes of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from relational_tensat.mugraph.fusion.chains import row_kernel
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.programs import ProgramBuilder
from relational_tensat.tensor import Array, Graph, Node, TensorType, Weight, build_graph


def causal_model(nothing: float = -np.inf, heads: int = 2, tokens: int = 16) -> Graph:
    """Attention in which what comes later by two vectors of positions counts nothing."""
    width = 16
    kinds = {name: TensorType("float32", (heads, tokens, width)) for name in "qv"}
    kinds["k"] = TensorType("float32", (heads, width, tokens))
    kinds |= {
        "rows": TensorType("float32", (tokens, 1)),
        "columns": TensorType("float32", (tokens,)),
    }
    number = Weight(TensorType("float32", ()), np.asarray(nothing, "float32"))
    nodes = [
        Node("less", ("rows", "columns"), ("later",)),
        Node("matmul", ("q", "k"), ("scores",)),
        Node("where", ("later", "nothing", "scores"), ("masked",)),
        Node("softmax", ("masked",), ("weights",), {"axis": 2}),
        Node("matmul", ("weights", "v"), ("y",)),
    ]
    return build_graph("causal", kinds, {"nothing": number}, nodes, ["y"])


def constant_model(nothing: float, op: str = "add", tokens: int = 16) -> Graph:
    """Attention with a mask that is a weight: what comes later counts nothing."""
    heads, width = 2, 16
    kinds = {name: TensorType("float32", (heads, tokens, width)) for name in "qv"}
    kinds["k"] = TensorType("float32", (heads, width, tokens))
    places = np.arange(tokens)
    is_left = places[:, None] >= places
    data = np.where(is_left, 0.0, nothing).astype("float32")
    nodes = [
        Node("matmul", ("q", "k"), ("scores",)),
        Node(op, ("scores", "mask"), ("masked",)),
        Node("softmax", ("masked",), ("weights",), {"axis": 2}),
        Node("matmul", ("weights", "v"), ("y",)),
    ]
    weights = {"mask": Weight(TensorType("float32", (tokens, tokens)), data)}
    return build_graph("constant", kinds, weights, nodes, ["y"])


def given_model(nothing: float = -np.inf, tokens: int = 16, *, is_added: bool = True) -> Graph:
    """Attention with a mask of bools that is given, and 0 for NaN where that leaves nothing."""
    heads, width = 2, 16
    kinds = {name: TensorType("float32", (heads, tokens, width)) for name in "qv"}
    kinds |= {
        "k": TensorType("float32", (heads, width, tokens)),
        "mask": TensorType("bool", (tokens, tokens)),
    }
    weights = {
        name: Weight(TensorType("float32", (1,)), np.asarray([value], "float32"))
        for name, value in (("zero", 0.0), ("nothing", nothing))
    }
    added = [
        Node("where", ("mask", "zero", "nothing"), ("bias",)),
        Node("add", ("scores", "bias"), ("masked",)),
    ]
    chosen = [Node("where", ("mask", "scores", "nothing"), ("masked",))]
    nodes = [
        Node("matmul", ("q", "k"), ("scores",)),
        *(added if is_added else chosen),
        Node("softmax", ("masked",), ("weights",), {"axis": 2}),
        Node("is_nan", ("weights",), ("empty",)),
        Node("where", ("empty", "zero", "weights"), ("guarded",)),
        Node("matmul", ("guarded", "v"), ("y",)),
    ]
    return build_graph("given", kinds, weights, nodes, ["y"])


def sliced_model() -> Graph:
    """A softmax of what a part of a table of bools leaves."""
    kinds = {"x": TensorType("float32", (4, 8)), "table": TensorType("bool", (6, 12))}
    number = Weight(TensorType("float32", ()), np.asarray(-np.inf, "float32"))
    part = {"axes": (0, 1), "starts": (1, 2), "ends": (5, 10), "steps": (1, 1)}
    nodes = [
        Node("slice", ("table",), ("mask",), part),
        Node("where", ("mask", "x", "nothing"), ("masked",)),
        Node("softmax", ("masked",), ("y",), {"axis": 1}),
    ]
    return build_graph("sliced", kinds, {"nothing": number}, nodes, ["y"])


def leaving(rows: int, keys: int) -> Array:
    """Return a mask that leaves the second half of a row, nothing, any half, or all, in turn."""
    every = [
        np.arange(keys) >= keys // 2,
        np.zeros(keys, bool),
        np.random.default_rng(4).random(keys) < 0.5,
        np.ones(keys, bool),
    ]
    return np.stack([every[row % len(every)] for row in range(rows)])


def chosen_program() -> MuGraph:
    """All comparisons, of two elements and with a number, and what each lets through, added up."""
    b = ProgramBuilder("chosen", x="m=5 n=12", y="m=5 n=12")
    tests = [b.apply(name, "x", "y") for name in ("less", "less_or_equal", "equal")]
    tests += [
        b.apply(f"is_{name}", "x", value=number)
        for name, number in (
            ("less", 0.0), ("less_or_equal", 1.0), ("equal", 1.0), ("greater", 0.0),
            ("greater_or_equal", np.inf),
        )
    ]  # fmt: skip
    total = "y"
    for place, test in enumerate(tests):
        kept = b.apply("keep", test, "x", value=-(2.0**place))
        total = b.apply("add", total, b.apply("is_less", kept, value=0.5 - 2.0**place))
    last = b.apply("keep", tests[4], total, value=-np.inf)
    return b.build(last)


#: All comparisons as one kernel.
CHOSEN = row_kernel(chosen_program())


def chosen_inputs(dtype: str) -> dict[str, Array]:
    """Return elements of which some are equal, infinite, 0 with either sign, or NaN."""
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.0], dtype)
    random = np.random.default_rng(1)
    x, y = (random.choice(special, (5, 12)) for _ in "xy")
    return {"x": x, "y": np.where(random.random((5, 12)) < 0.3, x, y)}


def chosen_expected(inputs: Mapping[str, Array]) -> Array:
    """Return what is computed of them, element by element."""
    x, y = (inputs[name].astype(np.float64) for name in "xy")
    tests = [x < y, x <= y, x == y, x < 0, x <= 1, x == 1, x > 0, x >= np.inf]
    total = y.copy()
    for place, test in enumerate(tests):
        total += np.where(test, x, -(2.0**place)) < 0.5 - 2.0**place
    return np.where(tests[4], total, -np.inf)
