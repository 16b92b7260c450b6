"""Regions at random, as kernels: functions, reductions and windows, in any order in memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.mugraph.fusion.chains import row_kernel
from relational_tensat.mugraph.graph.dims import Dim, Dims, Window, variables
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.mugraph.graph.rewrites import core, with_windows
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.tensor import Array

_UNARY = ("abs", "exp", "erf", "gelu", "neg", "relu", "sigmoid", "silu", "square", "tanh")
_BINARY = ("add", "sub", "mul", "div")
_REDUCTIONS = ("sum", "sum", "rms", "reduce_max")
_SIZES = (1, 2, 3, 5, 7, 8, 16, 17, 24, 40, 65, 130)
_MOST_ELEMENTS = 30_000
_SPECIAL = (np.nan, np.inf, -np.inf, 0.0, 1e-40, 3e38)


@dataclass(frozen=True, slots=True)
class Region:
    """A kernel, its operands, and how these and its results lie in memory."""

    graph: MuGraph
    lying: Mapping[str, Dims]
    inputs: Mapping[str, Array]


def random_region(random: np.random.Generator, *, slides: bool = False) -> Region:
    """Return a region; a few of its operands' elements are no plain numbers, in every other one.

    Args:
        random: draws it.
        slides: whether it begins with a convolution of each channel. Then its weights are plain: beside an
            image an infinite one counts nothing, where zeros times it would be NaN.
    """
    while True:
        try:
            graph = _graph(random, slides)
        except RelationalTensatError:
            continue
        dims = kernel_tensors(graph)
        if any(math.prod(dim.size for dim in own) > _MOST_ELEMENTS for own in dims.values()):
            continue
        lying = {name: _shuffled(random, own) for name, own in dims.items()}
        inputs = {
            name: (0.7 * random.standard_normal([d.size for d in own])).astype("float32")
            for name, own in graph.inputs.items()
        }
        if random.random() < 0.5:
            for value in (value for name, value in inputs.items() if name != "weights"):
                flat = value.reshape(-1)
                flat[random.integers(flat.size)] = random.choice(_SPECIAL)
        return Region(graph, lying, inputs)


def _graph(random: np.random.Generator, slides: bool) -> MuGraph:
    sizes = {name: int(random.choice(_SIZES)) for name in "abcde"[: random.integers(2, 6)]}
    whole = tuple(Dim(name, size) for name, size in sizes.items())
    inputs = {"x0": _shuffled(random, whole)}
    for number in range(1, random.integers(2, 5)):
        part = tuple(dim for dim in whole if random.random() < 0.6) or whole[:1]
        inputs[f"x{number}"] = _shuffled(random, part)
    steps: list[Operation] = []
    known = list(inputs)
    if slides:
        steps, weights = _convolution(random, inputs["x0"])
        shown = {dim.variable: dim for dim in _dims({**inputs, "weights": weights}, steps)["s"]}
        kept = {n: own for n, own in inputs.items() if n != "x0" and {*own} <= {*shown.values()}}
        inputs, known = {"x0": inputs["x0"], "weights": weights, **kept}, ["s", *kept]
    elif random.random() < 0.4:
        steps.append(_window(random, "x0", inputs["x0"]))
        known = ["w", *known[1:]]
        changed = {dim.variable: dim.size for dim in _dims(inputs, steps)["w"]}
        kept = [n for n in known[1:] if all(changed[d.variable] == d.size for d in inputs[n])]
        inputs, known = {n: inputs[n] for n in ("x0", *kept)}, ["w", *kept]
    for number in range(random.integers(2, 8)):
        dims = _dims(inputs, steps)
        name = f"t{number}"
        one, other = (str(random.choice(known[-3:])) for _ in range(2))
        kind = random.random()
        over = tuple(d.variable for d in dims[one] if random.random() < 0.5)
        if kind < 0.35 and over and len(over) < len(dims[one]):
            op = str(random.choice(_REDUCTIONS))
            epsilon = {"epsilon": 1e-5} if op == "rms" else {}
            steps.append(Operation(op, (one,), name, {"over": over, **epsilon}))
        elif kind < 0.45:
            value = {"value": float(random.normal())}
            steps.append(Operation(str(random.choice(("scale", "shift"))), (one,), name, value))
        elif kind < 0.7:
            steps.append(Operation(str(random.choice(_BINARY)), (one, other), name))
        else:
            steps.append(Operation(str(random.choice(_UNARY)), (one,), name))
        known.append(name)
    dims = _dims(inputs, steps)
    last = next((s.output for s in reversed(steps) if len(dims[s.output]) == len(whole)), None)
    outputs = tuple(dict.fromkeys([last or known[-1], *known[-1:]]))
    program = MuGraph("region", inputs, tuple(steps), outputs)
    made = {step.output for step in steps if step.op != "window"}
    if not set(outputs) <= made:
        raise RelationalTensatError("a result is an operand")
    return with_windows(row_kernel(core(program)), program)


def _convolution(random: np.random.Generator, dims: Dims) -> tuple[list[Operation], Dims]:
    """Return windows that slide along a variable or two, and sums of products with weights of theirs."""
    steps: list[Operation] = []
    along = [dims[n] for n in random.permutation(len(dims))[: random.integers(1, 3)]]
    taps: list[Dim] = []
    name = "x0"
    for number, dim in enumerate(along):
        tap = Dim("kl"[number], int(random.choice((1, 2, 3, 3, 5, 7))))
        stride, dilation = (int(random.choice((1, 1, 2, 3))) for _ in range(2))
        before, after = (int(random.integers(0, tap.size + 1)) for _ in range(2))
        left = dim.size + before + after - dilation * (tap.size - 1) - 1
        if left < 0:
            raise RelationalTensatError("it does not fit")
        places = left // stride + 1
        last = min(before + dim.size, 1 + stride * (places - 1) + dilation * (tap.size - 1))
        window = Window(
            (dim.variable,), (dim.variable, tap.variable), (places, tap.size), -before, 1, before, last,
            (stride, dilation),
        )  # fmt: skip
        steps.append(Operation("window", (name,), f"w{number}", window.attrs))
        name = f"w{number}"
        taps.append(tap)
    channels = [dim for dim in dims if dim not in along and random.random() < 0.8]
    over = tuple(tap.variable for tap in taps)
    factors = (name, "weights") if random.random() < 0.5 else ("weights", name)
    steps.append(Operation("mul", factors, "p"))
    steps.append(Operation("sum", ("p",), "s", {"over": over}))
    return steps, _shuffled(random, (*channels, *taps))


def _window(random: np.random.Generator, name: str, dims: Dims) -> Operation:
    """Return a part of a tensor along one variable, perhaps with zeros beside it."""
    dim = dims[random.integers(len(dims))]
    size = int(random.integers(1, dim.size + 1))
    offset = int(random.integers(0, dim.size - size + 1))
    before, after = (int(random.integers(0, 4)) for _ in range(2))
    window = Window(
        (dim.variable,), (dim.variable,), (before + size + after,), offset - before, 1, before,
        before + size,
    )  # fmt: skip
    return Operation("window", (name,), "w", window.attrs)


def _dims(inputs: Mapping[str, Dims], steps: list[Operation]) -> dict[str, Dims]:
    return kernel_tensors(MuGraph("part", inputs, tuple(steps), ()))


def _shuffled(random: np.random.Generator, dims: Dims) -> Dims:
    return tuple(dims[place] for place in random.permutation(len(dims)))


def turned(value: Array, dims: Dims, lying: Dims) -> Array:
    """Return a tensor as it lies in memory."""
    places = [variables(dims).index(name) for name in variables(lying)]
    return np.ascontiguousarray(value.transpose(places))


def with_name(region: Region, name: str) -> Region:
    """Return a region whose kernel has a name of its own."""
    (kernel,) = region.graph.kernels
    return replace(region, graph=replace(region.graph, steps=(replace(kernel, name=name),)))
