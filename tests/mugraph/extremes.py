"""Maxima, absolute values and powers: μGraphs, models, and what they are in NumPy."""

from __future__ import annotations

import numpy as np

from bench.models.builder import GraphBuilder
from relational_tensat.mugraph.graph.dims import dims_of
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    Saver,
)
from relational_tensat.tensor import Array, Graph, Weight, build_graph

OVER = {"over": ("k",)}


def kernel(loop: int = 1, rows: int = 4, columns: int = 24) -> MuGraph:
    """Of X the rows' largest elements, absolute values and some powers; of X and Y powers.

    The largest are of all iterations of a loop, if there is one; what is not reduced is added up.
    """
    whole = f"m={rows} k={columns}"
    loads = tuple(
        InputIterator(name, name.lower(), ("m",), "k" if loop > 1 else "") for name in ("X", "Y")
    )
    functions = (
        Operation("abs", ("x",), "a"),
        Operation("power", ("a",), "p", {"value": 2.5}),
        Operation("power", ("x",), "q", {"value": -3.0}),
        Operation("pow", ("a", "y"), "r"),
    )
    made = ("a", "p", "q", "r")
    if loop == 1:
        largest: tuple[Operation | Accumulate, ...] = (Operation("reduce_max", ("x",), "t", OVER),)
        kept: tuple[Operation | Accumulate, ...] = ()
        stored, dims = made, whole
    else:
        largest = (Accumulate("x", "t", "reduce_max", ("k",)),)
        sums = [
            (Operation("sum", (name,), f"{name}s", OVER), Accumulate(f"{name}s", f"{name}t"))
            for name in made
        ]
        kept = tuple(step for pair in sums for step in pair)
        stored, dims = tuple(f"{name}t" for name in made), f"m={rows}"
    savers = [Saver("t", "T", dims_of(f"m={rows}"), ("m",))]
    savers += [
        Saver(tile, name.upper(), dims_of(dims), ("m",))
        for tile, name in zip(stored, made, strict=True)
    ]
    block = BlockGraph((2,), loop, loads, (*largest, *functions, *kept), tuple(savers))
    inputs = {name: dims_of(whole) for name in ("X", "Y")}
    return MuGraph("extremes", inputs, (Kernel("extremes", block),), ("T", "A", "P", "Q", "R"))


def drawn(dtype: str, rows: int = 4, columns: int = 24) -> dict[str, Array]:
    """Return inputs of both signs, of which no power is beyond the type; rows of -inf and with NaN."""
    random = np.random.default_rng(1)
    x = random.uniform(0.5, 2, (rows, columns)) * random.choice((-1, 1), (rows, columns))
    x[1] = -np.inf
    x[2, 5] = np.nan
    x[3] = -np.abs(x[3])
    y = random.uniform(-2, 2, (rows, columns))
    return {"X": x.astype(dtype), "Y": y.astype(dtype)}


def expected(inputs: dict[str, Array], is_summed: bool) -> list[Array]:
    """Return what the kernel stores, in float64."""
    x, y = (inputs[name].astype("float64") for name in ("X", "Y"))
    size = np.abs(x)
    with np.errstate(all="ignore"):
        powers = [size, size**2.5, x**-3.0, size**y]
        return [x.max(1), *(p.sum(1) if is_summed else p for p in powers)]


def absmax_linear(rows: int = 8, k: int = 64, n: int = 96) -> Graph:
    """Rows divided by their largest absolute value, times a matrix."""
    b = GraphBuilder("absmax")
    x, w = b.input("x", rows, k), b.weight("w", k, n)
    size = b.op("reduce_max", b.op("abs", x), axes=(1,), keepdims=True)
    return b.build(b.op("matmul", b.op("div", x, size), w))


def powers_model() -> Graph:
    """|x|^2.5 · x^3 plus its root by a power, to a power given by a tensor, with rows' largest."""
    b = GraphBuilder("powers")
    x, y = b.input("x", 4, 8), b.input("y", 4, 8)
    values = {"first": 2.5, "cube": 3.0, "root": 0.5}
    number = [b.weight(name) for name in values]
    size = b.op("abs", x)
    product = b.op("mul", b.op("pow", size, number[0]), b.op("pow", x, number[1]))
    total = b.op("add", product, b.op("pow", size, number[2]))
    raised = b.op("pow", b.op("abs", total), y)
    graph = b.build(b.op("sub", raised, b.op("reduce_max", x, axes=(1,), keepdims=True)))
    weights = {
        name: Weight(weight.type, np.float32(values[name]))
        for name, weight in graph.weights.items()
    }
    return build_graph(graph.name, graph.inputs, weights, graph.nodes, graph.outputs)
