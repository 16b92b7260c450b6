"""A picture of the three levels, in Graphviz' language: kernels around blocks, blocks around threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from relational_tensat.base.escaping import escaped
from relational_tensat.mugraph.graph.dims import Dims, text_of
from relational_tensat.mugraph.graph.mugraph import (
    AXES,
    Kernel,
    MuGraph,
    Operation,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.mugraph_text import load_text, maps_text, step_text
from relational_tensat.mugraph.graph.well_formed import (
    BlockTensors,
    Stage,
    block_tensors,
    kernel_tensors,
)

_DEVICE, _SHARED, _REGISTERS = "#f2c9a0", "#b9d7ee", "#cfe8c5"


def mugraph_dot(graph: MuGraph) -> str:
    """Return a μGraph as a digraph of Graphviz: tensors in device memory, and what kernels do with them.

    Raises:
        InputError: it is not well-formed.
    """
    device = kernel_tensors(graph)
    lines = [
        f"digraph {_quoted(graph.name)} {{",
        "  compound=true; rankdir=TB;",
        '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10];',
        '  edge [fontname="Helvetica", fontsize=9];',
    ]
    for name, dims in device.items():
        tensor = f"{name}[{text_of(dims)}]"
        lines.append(f"  {_device(name)} [label={_quoted(tensor)}, fillcolor={_quoted(_DEVICE)}];")
    for step in graph.steps:
        if isinstance(step, Kernel):
            lines += (f"  {line}" for line in _kernel_lines(step, device))
        else:
            lines += (f"  {line}" for line in _library_lines(step))
    return "\n".join([*lines, "}"]) + "\n"


def _library_lines(step: Operation) -> Iterator[str]:
    node = _quoted(f"library {step.output}")
    yield f"{node} [label={_quoted(step.op)}, shape=ellipse];"
    yield from (f"{_device(name)} -> {node};" for name in step.operands)
    yield f"{node} -> {_device(step.output)};"


def _kernel_lines(kernel: Kernel, device: Mapping[str, Dims]) -> Iterator[str]:
    block = kernel.block
    grid = " ".join(f"{axis}={size}" for axis, size in zip(AXES, block.grid, strict=False))
    yield f"subgraph {_quoted(f'cluster {kernel.name}')} {{"
    yield f"  label={_quoted(f'kernel {kernel.name}: grid {grid or 1}')}; color=gray40;"
    nodes = list(_nodes(kernel, block_tensors(kernel, device)))
    if block.loop > 1:
        yield f"  subgraph {_quoted(f'cluster {kernel.name} loop')} {{"
        yield f"    label={_quoted(f'loop {block.loop} times')}; style=dashed;"
        yield from (f"    {line}" for stage, line in nodes if stage is Stage.LOOP)
        yield "  }"
    yield from (f"  {line}" for stage, line in nodes if stage is not Stage.LOOP or block.loop == 1)
    yield "}"
    yield from _edges(kernel)


def _nodes(kernel: Kernel, tensors: BlockTensors) -> Iterator[tuple[Stage, str]]:
    """Yield a node for each load and each step, with its stage."""
    for it in kernel.block.iterators:
        text = (
            f"{it.output}[{text_of(tensors.dims[it.output])}] = {load_text(it, kernel.block.grid)}"
        )
        yield tensors.stages[it.output], _node(kernel, it.output, text, _SHARED)
    for step in kernel.block.steps:
        color = _REGISTERS if isinstance(step, ThreadGraph) else _SHARED
        text = step_text(step, tensors.dims)
        yield tensors.stages[step.outputs[0]], _node(kernel, step.outputs[0], text, color)


def _edges(kernel: Kernel) -> Iterator[str]:
    block = kernel.block
    makers = {name: step.outputs[0] for step in block.steps for name in step.outputs}
    for it in block.iterators:
        yield f"{_device(it.tensor)} -> {_tile(kernel, it.output)};"
    for step in block.steps:
        for name in dict.fromkeys(step.operands):
            yield f"{_tile(kernel, makers.get(name, name))} -> {_tile(kernel, step.outputs[0])};"
    for saver in block.savers:
        label = _quoted(f"store{maps_text(saver.omap, block.grid)}")
        tile = _tile(kernel, makers.get(saver.tile, saver.tile))
        yield f"{tile} -> {_device(saver.output)} [label={label}];"


def _node(kernel: Kernel, tile: str, text: str, color: str) -> str:
    return f"{_tile(kernel, tile)} [label={_quoted(text)}, fillcolor={_quoted(color)}];"


def _device(name: str) -> str:
    return _quoted(f"device {name}")


def _tile(kernel: Kernel, name: str) -> str:
    return _quoted(f"{kernel.name} {name}")


def _quoted(text: str) -> str:
    shown = escaped(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{shown}"'
