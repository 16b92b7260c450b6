"""A μGraph of windows of tiles: what Mirage's concat, split and chunk within kernels are."""

from __future__ import annotations

from relational_tensat.mugraph.graph.dims import Window, dims_of
from relational_tensat.mugraph.graph.mugraph import (
    BlockGraph,
    BlockStep,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    Saver,
)


def parts_of_tiles(with_product: bool = True) -> MuGraph:
    """Of [X ‖ 2Y]·W, or of [X ‖ 2Y]: some columns, every second one of others, and one, added up."""
    steps: list[BlockStep] = [
        Operation("scale", ("y",), "yy", {"value": 2.0}),
        _window("x", "x_wide", "a", "i", 20, 0, 1, 0, 12),
        _window("yy", "y_wide", "b", "i", 20, -12, 1, 12, 20),
        Operation("add", ("x_wide", "y_wide"), "both"),
        *([Operation("matmul", ("both", "w"), "o", {"over": ("i",)})] if with_product else []),
    ]
    whole, variable = ("o", "n") if with_product else ("both", "i")
    steps += [
        _window(whole, "first", variable, "j", 9, 3),
        _window(whole, "second", variable, "j", 9, 2, 2),
        Operation("window", (whole,), "one",
                  {"variables": (variable,), "into": (), "sizes": (), "offset": 17, "step": 1,
                   "first": 0, "last": 1}),
        Operation("mul", ("first", "second"), "product"),
        Operation("add", ("product", "one"), "t"),
    ]  # fmt: skip
    loads = [InputIterator("X", "x", ("m",)), InputIterator("Y", "y", ("m",))]
    inputs = {"X": dims_of("m=6 a=12"), "Y": dims_of("m=6 b=8")}
    if with_product:
        loads.append(InputIterator("W", "w", ("",)))
        inputs["W"] = dims_of("i=20 n=20")
    saver = Saver("t", "T", dims_of("m=6 j=9"), ("m",))
    block = BlockGraph((2,), 1, tuple(loads), tuple(steps), (saver,))
    name = "parts_of_product" if with_product else "parts_of_tiles"
    return MuGraph(name, inputs, (Kernel(name, block),), ("T",))


def _window(
    operand: str, output: str, variable: str, into: str, size: int, offset: int = 0, step: int = 1,
    first: int = 0, last: int = 0,
) -> Operation:  # fmt: skip
    window = Window((variable,), (into,), (size,), offset, step, first, last or size)
    return Operation("window", (operand,), output, window.attrs)
