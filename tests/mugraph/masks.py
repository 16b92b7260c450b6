"""Attention with masks of -inf: models as exports have it, μGraphs, inputs, and what NumPy makes of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from relational_tensat.mugraph.graph.dims import dims_of
from relational_tensat.mugraph.graph.mugraph import (
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    RunningMax,
    ThreadGraph,
)
from relational_tensat.mugraph.programs import ProgramBuilder
from relational_tensat.tensor import Array, Graph, Node, TensorType, Weight, build_graph
from tests.mugraph.conditions import leaving
from tests.mugraph.kernels.mugraphs import attention, split_attention


def guarded_model(heads: int = 2, tokens: int = 16, width: int = 16, guard: float = 0.0) -> Graph:
    """Attention with a mask, and 0 for NaN where that leaves nothing of a row, as exports have it."""
    kinds = {name: TensorType("float32", (heads, tokens, width)) for name in "qv"}
    kinds["k"] = TensorType("float32", (heads, width, tokens))
    kinds["mask"] = TensorType("float32", (tokens, tokens))
    number = Weight(TensorType("float32", (1,)), np.asarray([guard], "float32"))
    nodes = [
        Node("matmul", ("q", "k"), ("scores",)),
        Node("add", ("scores", "mask"), ("masked",)),
        Node("softmax", ("masked",), ("weights",), {"axis": 2}),
        Node("is_nan", ("weights",), ("nothing",)),
        Node("where", ("nothing", "zero", "weights"), ("guarded",)),
        Node("matmul", ("guarded", "v"), ("y",)),
    ]
    return build_graph("guarded", kinds, {"zero": number}, nodes, ["y"])


def guarded_program(h: int = 2, q: int = 8, d: int = 4, k: int = 8, e: int = 4) -> MuGraph:
    """The same as a program."""
    inputs = {"Q": f"h={h} q={q} d={d}", "K": f"h={h} d={d} k={k}", "V": f"h={h} k={k} e={e}"}
    b = ProgramBuilder("guarded", **inputs, mask=f"q={q} k={k}")
    weights = b.apply("exp", b.apply("add", b.matmul("Q", "K", "d"), "mask"))
    total = b.apply("sum", weights, over=("k",))
    return b.build(b.matmul(b.apply("div_or_zero", weights, total), "V", "k"))


def masked_attention(h: int = 2, q: int = 16, d: int = 16, k: int = 64, e: int = 16) -> MuGraph:
    """FlashAttention with a mask, 0 where nothing is left: a loop over keys."""
    plain = attention(h, q, d, k, e)
    mask = InputIterator("mask", "mask_tile", ("", "q"), "k")
    return _masked(plain, "masked_attention", f"q={q} k={k}", mask)


def masked_split(q: int = 16, d: int = 16, k: int = 96, e: int = 8) -> MuGraph:
    """FlashDecoding with a mask: each of two blocks may meet keys of which nothing is left."""
    mask = InputIterator("mask", "mask_tile", ("k",), "k")
    return _masked(split_attention(q, d, k, e), "masked_split", f"q={q} k={k}", mask)


def by_bools(graph: MuGraph) -> MuGraph:
    """Return attention whose mask is bools: what they do not leave is -inf."""
    first, *others = graph.kernels
    loads = tuple(replace(it, is_condition=it.tensor == "mask") for it in first.block.iterators)
    chosen = Operation("keep", ("mask_tile", "s"), "left", {"value": -math.inf})
    steps = tuple(chosen if s.outputs == ("left",) else s for s in first.block.steps)
    block = replace(first.block, iterators=loads, steps=steps)
    kernels = (replace(first, block=block), *others)
    name = f"{graph.name}_by_bools"
    return replace(graph, name=name, steps=kernels, conditions=frozenset({"mask"}))


def chosen_attention(**sizes: int) -> MuGraph:
    """``guarded_program`` whose mask is bools."""
    program = guarded_program(**sizes)
    steps = tuple(
        replace(step, op="keep", operands=step.operands[::-1], attrs={"value": -math.inf})
        if step.op == "add"
        else step
        for step in program.operators
    )
    return replace(program, steps=steps, conditions=frozenset({"mask"}))


def _masked(graph: MuGraph, name: str, dims: str, mask: InputIterator) -> MuGraph:
    first, *others = graph.kernels
    block = first.block
    adding = Operation("add", ("s", "mask_tile"), "left")
    steps = [replace(s, operand="left") if isinstance(s, RunningMax) else s for s in block.steps]
    steps = [_reading_left(step) for step in steps]
    block = replace(block, iterators=(*block.iterators, mask), steps=(steps[0], adding, *steps[1:]))
    *before, last = [Kernel(name, block), *others]
    divided = tuple(
        replace(s, op="div_or_zero") if isinstance(s, Operation) and s.op == "div" else s
        for s in last.block.steps
    )
    kernels = (*before, replace(last, block=replace(last.block, steps=divided)))
    return replace(graph, name=name, inputs={**graph.inputs, "mask": dims_of(dims)}, steps=kernels)


def _reading_left(step: object) -> object:
    if isinstance(step, ThreadGraph):
        return replace(step, steps=tuple(map(_reading_left, step.steps)))
    if isinstance(step, Operation) and step.op == "sub":
        return replace(step, operands=("left", step.operands[1]))
    return step


#: Keys in one loop, among blocks, and in tiles the last of which is smaller.
MASKED = (masked_attention(), masked_split(), masked_attention(k=61))
BY_BOOLS = tuple(map(by_bools, MASKED))


def with_mask(inputs: Mapping[str, Array], mask: str = "mask") -> dict[str, Array]:
    """Return inputs whose mask leaves the second half of a row, nothing, any half, or all, in turn."""
    values, left = inputs[mask], leaving(*inputs[mask].shape)
    return {**inputs, mask: left if values.dtype == bool else np.where(left, values, -np.inf)}


def expected(inputs: Mapping[str, Array]) -> Array:
    """Return the attention of Q, K and V with the mask, 0 where nothing is left."""
    mask = inputs["mask"]
    bias = np.where(mask, 0, -np.inf) if mask.dtype == bool else mask.astype(np.float64)
    wide = {name: value.astype(np.float64) for name, value in inputs.items()}
    scores = wide["Q"] @ wide["K"] + bias
    largest = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(largest), 0, largest))
    total = weights.sum(axis=-1, keepdims=True)
    return np.where(total > 0, (weights @ wide["V"]) / np.where(total > 0, total, 1), 0)
