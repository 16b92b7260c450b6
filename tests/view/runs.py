"""Runs to make pages of."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from relational_tensat import Options, optimize
from relational_tensat.tensor import Graph, Node, build_graph
from tests.graphs import f32, shared_matmuls

#: Names that would run, or break the page, if any of them were taken for markup or code.
HOSTILE = (
    "</script><script>document.title='run'</script>",
    "<img src=x onerror=\"document.title='run'\">",
    "javascript:document.title='run'",
    "{{constructor.constructor('document.title=1')()}}",
    "\u2028\u2029 ' \" ` ${1} \\u003c",
    "<!--",
)


@cache
def stored_run(name: str) -> Path:
    """Return the database of a run of a graph of this module, which is made once."""
    path = Path(mkdtemp()) / f"{name}.duckdb"
    graph, options = RUNS[name]
    optimize(graph(), Options.of(db=path, iterations=3, **options))
    return path


def transposed() -> Graph:
    """Return two products of one input that is transposed forth and back."""
    return build_graph(
        "transposed",
        {"x": f32(64, 64)},
        dict(shared_matmuls().weights),
        [
            Node("transpose", ("x",), ("there",), {"perm": (1, 0)}),
            Node("transpose", ("there",), ("back",), {"perm": (1, 0)}),
            Node("matmul", ("back", "w1"), ("a",)),
            Node("matmul", ("x", "w2"), ("b",)),
        ],
        ["a", "b"],
    )


def gated() -> Graph:
    """Return a chain of functions that one kernel can compute."""
    x = f32(8, 64)
    return build_graph(
        "gated",
        {"x": x, "y": x},
        {},
        [Node("sigmoid", ("x",), ("s",)), Node("mul", ("s", "y"), ("z",))],
        ["z"],
    )


def hostile() -> Graph:
    """Return two products of one input, everything in which has a name that means harm."""
    x, w1, w2, a, b, c = HOSTILE
    return build_graph(
        "</title><script>document.title='run'</script>",
        {x: f32(64, 64)},
        {w1: shared_matmuls().weights["w1"], w2: shared_matmuls().weights["w2"]},
        [
            Node("matmul", (x, w1), (a,), name=HOSTILE[0]),
            Node("matmul", (x, w2), (b,), name=HOSTILE[1]),
            Node("add", (a, b), (c,), name=HOSTILE[2]),
        ],
        [c],
    )


#: The graphs, and what their runs are asked for.
RUNS: dict[str, tuple[Callable[[], Graph], dict[str, Any]]] = {
    "shared_matmuls": (shared_matmuls, {}),
    "hostile": (hostile, {}),
    "transposed": (transposed, {}),
    "gated": (gated, {"fuse": True}),
    "tree": (
        shared_matmuls,
        {"search": "mcts", "tree_budget": 8, "tree_decisions": 2, "tree_threshold": 0.0},
    ),
}
