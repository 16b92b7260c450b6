"""Graphs of a few nodes on which TASO's rules have something to do, and are right."""

from __future__ import annotations

from collections.abc import Callable

from bench.models import GraphBuilder
from relational_tensat.tensor import AttrValue, Graph


def products() -> Graph:
    """Return sums and products of matmuls that share operands."""
    build = GraphBuilder("products")
    x, y = build.input("x", 4, 4), build.input("y", 4, 4)
    a, b, c = (build.weight(name, 4, 4) for name in "abc")
    left = build.op("add", build.op("matmul", x, a), build.op("matmul", y, b))
    right = build.op("mul", build.op("matmul", x, c), build.op("relu", left))
    return build.build(build.op("matmul", build.op("matmul", right, a), b), left)


def branches() -> Graph:
    """Return convolutions of one image, fused with their activation and not, joined again."""
    build = GraphBuilder("branches")
    x = build.input("x", 1, 4, 5, 5)
    small, wide = build.weight("small", 4, 4, 1, 1), build.weight("wide", 4, 4, 3, 3)
    settings: dict[str, AttrValue] = {"stride": (1, 1), "pad": "same"}
    first = build.op("relu", build.op("conv", x, small, **settings))
    two = build.op("conv", x, wide, act="relu", **settings)
    three = build.op("conv", x, small, act="relu", **settings)
    return build.build(build.op("concat", build.op("add", first, three), two, axis=1))


def chain(steps: int) -> Graph:
    """Return x·w and x·f(x·w), f of so many steps: joined, the first would depend on itself."""
    build = GraphBuilder("chain")
    x = build.input("x", 4, 4)
    first = last = build.op("matmul", x, build.weight("w", 4, 4))
    for _ in range(steps):
        last = build.op("tanh", last)
    return build.build(build.op("add", first, build.op("matmul", x, last)))


def shared_left(count: int) -> Graph:
    """Return so many products of one input with weights of their own."""
    build = GraphBuilder("shared")
    x = build.input("x", 4, 4)
    return build.build(
        *(
            build.op("tanh", build.op("matmul", x, build.weight(f"w{i}", 4, 4)))
            for i in range(count)
        )
    )


GRAPHS: dict[str, Callable[[], Graph]] = {
    "products": products,
    "branches": branches,
    "chain": lambda: chain(2),
    "shared": lambda: shared_left(3),
}
