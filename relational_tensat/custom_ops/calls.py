"""The custom ops of a written file: its calls of local functions, with their shapes and kernels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import onnx

from relational_tensat.base.errors import InputError
from relational_tensat.custom_ops.library import KernelOp, KernelUse, Shape, sources_of
from relational_tensat.formats.onnx_frame import plan_names
from relational_tensat.formats.onnx_names import all_nodes, subgraphs
from relational_tensat.mugraph.fusion.own_kernel import OwnKernel
from relational_tensat.rules.backends.fused_chain import DOMAIN
from relational_tensat.tensor import Graph, TensorType

#: One kernel may be several functions, which leave its result in other shapes.
_NAME = re.compile(r"fused_(k[0-9a-f]+)(?:_[0-9]+)?")


def ops_of_file(file: Path, graph: Graph, kernels: Iterable[OwnKernel]) -> tuple[KernelOp, ...]:
    """Return the custom ops of a file: one for each function that is called, if C can say its kernel.

    Args:
        file: the written file.
        graph: that it was written of; it has the shapes, but those of kernels with loops.
        kernels: of float32, which functions are named for.
    """
    known = {kernel.key: kernel for kernel in kernels}
    model = onnx.load(file, load_external_data=False)
    names = plan_names(graph).names
    shapes = {names.get(n, n): k.shape for n, k in graph.types.items() if isinstance(k, TensorType)}
    shapes |= {
        each.name: tuple(each.dims) for each in model.graph.initializer
    }  # numbers have others
    calls: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        if node.domain == DOMAIN:
            calls.setdefault(node.op_type, []).append(node)
    elsewhere = {
        inner.op_type
        for node in model.graph.node
        for body in subgraphs(node)
        for inner in all_nodes(body.node)
        if inner.domain == DOMAIN
    }
    ops = []
    for name, nodes in calls.items():
        called = _NAME.fullmatch(name)
        kernel = known.get(called[1]) if called else None
        if kernel is None or name in elsewhere:  # in a body it may have other sizes
            continue
        op = op_of(kernel)
        if not kernel.loops:
            op = replace(op, uses=tuple(dict.fromkeys(_use(shapes, node) for node in nodes)))
        op = replace(op, name=name)
        try:
            sources_of([op])
        except InputError:  # a product, say
            continue
        ops.append(op)
    return tuple(ops)


def op_of(kernel: OwnKernel) -> KernelOp:
    """Return the custom op of a kernel, in the shapes that it was made for."""
    uses = (KernelUse(kernel.operands, kernel.results),)
    return KernelOp(
        f"fused_{kernel.key}", kernel.graph, uses, kernel.loops, kernel.block, kernel.quantized
    )


def _use(shapes: Mapping[str, Shape], node: onnx.NodeProto) -> KernelUse:
    return KernelUse(*(tuple(shapes[name] for name in side) for side in (node.input, node.output)))
