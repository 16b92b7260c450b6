"""Models and μGraphs that choose by conditions which they compute, and what NumPy makes of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from relational_tensat.mugraph.fusion.chain_program import row_kernel
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
