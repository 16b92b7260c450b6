"""μGraphs as people read them.

The text has loads, the loop, the steps after it, stores, and dims on every tensor; the picture kernels
around blocks, blocks around threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relational_tensat.base.shown_text import escaped
from relational_tensat.mugraph.graph.dims import Dims, Window, text_of
from relational_tensat.mugraph.graph.mugraph import (
    AXES,
    Accumulate,
    BlockStep,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    RunningMax,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.partial_tiles import TileSplit
from relational_tensat.mugraph.graph.validity import BlockStage, block_tensors, kernel_tensors
from relational_tensat.tensor.types import AttrValue

_TITLES = (
    (BlockStage.INVARIANT, "before the loop"),
    (BlockStage.LOOP, "loop"),
    (BlockStage.AFTER, "after the loop"),
)


def mugraph_text(graph: MuGraph) -> str:
    """Return a μGraph as text, several lines.

    Raises:
        InputError: it is not well-formed.
    """
    dims = kernel_tensors(graph)
    inputs = ", ".join(
        _tensor(name, kind) + (" of bools" if name in graph.conditions else "")
        for name, kind in graph.inputs.items()
    )
    outputs = ", ".join(_tensor(name, dims[name]) for name in graph.outputs)
    lines = [f"{graph.name}({inputs}) → {outputs}"]
    for step in graph.steps:
        if isinstance(step, Kernel):
            lines += _kernel_lines(step, dims)
        else:
            lines.append(f"library {_tensor(step.output, dims[step.output])} = {_formula(step)}")
    return "\n".join(map(escaped, lines))


def _kernel_lines(kernel: Kernel, device: Mapping[str, Dims]) -> list[str]:
    block = kernel.block
    tensors = block_tensors(kernel, device)
    grid = " ".join(f"{axis}={size}" for axis, size in zip(AXES, block.grid, strict=False))
    lines = [f"kernel {kernel.name}: grid {grid or 'of one block'}, loop {block.loop}"]
    for iterator in block.iterators:
        tile = _tensor(iterator.output, tensors.dims[iterator.output])
        lines.append(f"  {tile} = {_load_text(iterator, block.grid)}")
    lines += [f"  {_last_tile_text(split)}" for split in tensors.partial.values()]
    for stage, title in _TITLES:
        steps = [step for step in block.steps if tensors.stages[step.outputs[0]] is stage]
        if not steps:
            continue
        is_flat = block.loop == 1 and stage is not BlockStage.LOOP
        indent = "  " if is_flat else "    "
        lines += (
            []
            if is_flat
            else [f"  {title}{f' {block.loop} times' if stage is BlockStage.LOOP else ''}:"]
        )
        for step in steps:
            lines.append(f"{indent}{step_text(step, tensors.dims)}")
    for saver in block.savers:
        stored = _tensor(saver.output, saver.dims) + (" as float32" if saver.is_wide else "")
        lines.append(f"  store {saver.tile} → {stored}{_maps_text(saver.omap, block.grid)}")
    return lines


def _last_tile_text(split: TileSplit) -> str:
    """Return how large the last tile is, where it is smaller than the others."""
    last = split.whole - (split.count - 1) * split.tile
    return f"last of {split.count} tiles of {split.variable}={split.whole}: {split.variable}={last}"


def _load_text(iterator: InputIterator, grid: Sequence[int]) -> str:
    """Return what a block loads, with the maps of grid and loop."""
    windows = "".join(f" {_window_text(window)}" for window in iterator.windows)
    return f"load {iterator.tensor}{windows}{_maps_text(iterator.imap, grid, iterator.fmap)}"


def _window_text(window: Window) -> str:
    """Return a window as ``(c = 768 + i, i = h=12 e=64)``, with where it is 0."""
    into = " ".join(f"{name}={size}" for name, size in zip(window.into, window.sizes, strict=True))
    if window.strides:
        each = zip(window.strides, window.into, strict=True)
        slid = " + ".join(name if stride == 1 else f"{stride} {name}" for stride, name in each)
        into = f"{slid}, {into}"
    step = "i" if window.step == 1 else f"{window.step} i"
    bound = f", 0 unless {window.first} ≤ i < {window.last}" if window.is_bounded else ""
    return f"({' '.join(window.variables) or '1'} = {window.offset} + {step}, i = {into or '0'}{bound})"


def _maps_text(variables: Sequence[str], grid: Sequence[int], fmap: str = "") -> str:
    """Return which variable each axis of a grid splits, and the one that the loop traverses, in braces."""
    axes = zip(AXES, variables, grid, strict=False)
    maps = [f"{axis}→{variable or 'φ'}" for axis, variable, _ in axes]
    maps += [f"loop→{fmap}"] if fmap else []
    return f" {{{' '.join(maps)}}}" if maps else ""


def step_text(step: BlockStep, dims: Mapping[str, Dims]) -> str:
    """Return a step of a block, its results with their dims."""
    match step:
        case Operation():
            return f"{_tensor(step.output, dims[step.output])} = {_formula(step)}"
        case ThreadGraph():
            inner = "; ".join(
                f"{operation.output} = {_formula(operation)}" for operation in step.steps
            )
            outputs = ", ".join(_tensor(name, dims[name]) for name in step.outputs)
            return f"{outputs} = thread {{ {inner} }}"
        case RunningMax():
            largest = f"running max of {step.operand} over {' '.join(step.over)}"
            return f"{_tensor(step.output, dims[step.output])} = {largest}"
        case Accumulate():
            how = {
                "sum": "sum",
                "concat": "concatenation",
                "max": "max",
                "reduce_max": "reduce_max",
                "rms": "root mean square",
            }[step.kind]
            along = f" along {' '.join(step.along)}" if step.along else ""
            rescale = f", rescaled by {step.rescale}" if step.rescale else ""
            accumulated = f"{how} over the loop of {step.operand}{along}{rescale}"
            return f"{_tensor(step.output, dims[step.output])} = {accumulated}"


def _formula(operation: Operation) -> str:
    attrs = [f"{name} {_value_text(value)}" for name, value in operation.attrs.items()]
    return f"{operation.op}({', '.join(operation.operands)}){''.join(f' {attr}' for attr in attrs)}"


def _value_text(value: AttrValue) -> str:
    return " ".join(map(_value_text, value)) if isinstance(value, tuple) else str(value)


def _tensor(name: str, dims: Dims) -> str:
    return f"{name}[{text_of(dims)}]"
