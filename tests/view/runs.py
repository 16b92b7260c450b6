"""Runs to make pages of."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

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
    graph = {"shared_matmuls": shared_matmuls, "hostile": hostile}[name]()
    optimize(graph, Options.of(db=path, iterations=3))
    return path


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
