"""A μGraph as a page draws it: device, blocks and threads, each with its tensors and maps.

The kernels of a run stand beside the operators that each replaces.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.base.files import sql
from relational_tensat.egraph.catalogue import type_text
from relational_tensat.explain.egraph_tables import StoredEGraph, StoredSignature
from relational_tensat.mugraph.graph.dims import Dims, text_of
from relational_tensat.mugraph.graph.mugraph import (
    AXES,
    WIDE_BYTES,
    Accumulate,
    BlockStep,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    RunningMax,
    Saver,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.mugraph_json import decoded
from relational_tensat.mugraph.graph.mugraph_text import mugraph_text
from relational_tensat.mugraph.graph.validity import BlockTensors, block_tensors, kernel_tensors
from relational_tensat.mugraph.kernels.emission import Emitted, PlaceRow, emit
from relational_tensat.mugraph.sizes.cost_model import Transfer, transfers
from relational_tensat.rules.backends.fused_kernel import FusedKernel
from relational_tensat.tensor import Attrs, ValueType
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import AttrValue, TensorType
from relational_tensat.view.data.kernel_data import (
    FusedUse,
    MuDrawing,
    MuKernel,
    MuNode,
    MuTransfer,
    ReplacedOperator,
)
from relational_tensat.view.frames import has_table

#: Where an axis of the grid or the loop has no variable.
_NONE = "φ"


def drawing(graph: MuGraph, element: str = "float16") -> MuDrawing:
    """Return what is drawn of a μGraph.

    Args:
        element: type of the elements.

    Raises:
        InputError: it is not well-formed.
    """
    device = kernel_tensors(graph)
    emitted = _emitted(graph, element)
    item_bytes = TensorType(element, (1,)).nbytes
    items = {name: WIDE_BYTES if name in graph.wide else item_bytes for name in device}
    kernels = tuple(
        _kernel(kernel, device, code, items)
        for kernel, code in zip(graph.kernels, emitted, strict=True)
    )
    nodes = tuple(_device_nodes(graph, device))
    return MuDrawing(graph.name, element, nodes, kernels, mugraph_text(graph))


def _emitted(graph: MuGraph, element: str) -> list[Emitted | None]:
    """Return each kernel's CUDA: it places tensors."""
    try:
        return [*emit(graph, "cuda", element)]
    except RelationalTensatError:  # there are no kernels, or CUDA cannot say one of them
        return [None] * len(graph.kernels)


def _device_nodes(graph: MuGraph, device: Mapping[str, Dims]) -> Iterable[MuNode]:
    for name, dims in graph.inputs.items():
        yield _node(name, "tensor", name, dims)
    maker = {name: name for name in graph.inputs}
    number = 0
    for step in graph.steps:
        inputs = tuple(maker[name] for name in step.operands)
        if isinstance(step, Kernel):
            key = f"kernel {number}"
            yield MuNode(key, "kernel", step.name, (), "", inputs, "", number, ())
            number += 1
            for saver in step.block.savers:
                maker[saver.output] = saver.output
                yield _node(saver.output, "tensor", saver.output, saver.dims, inputs=(key,))
        else:
            maker[step.output] = step.output
            yield _operation(step, "library", device[step.output])


def _kernel(
    kernel: Kernel,
    device: Mapping[str, Dims],
    code: Emitted | None,
    item_bytes: Mapping[str, int],
) -> MuKernel:
    block = kernel.block
    tensors = block_tensors(kernel, device)
    moved = tuple(
        _transfer(transfer, item_bytes, block.loop) for transfer in transfers(kernel, device)
    )
    return MuKernel(
        name=kernel.name,
        grid=block.grid,
        loop=block.loop,
        shared_bytes=code.shared_bytes if code else None,
        transfers=moved,
        block=tuple(_placed(_block_nodes(kernel, tensors), code)),
    )


def _placed(nodes: Iterable[MuNode], code: Emitted | None) -> Iterable[MuNode]:
    """Yield nodes with where what they make lies in a block, and how: see ``mugraph.kernels.layouts``."""
    places = {place.tensor: place for place in code.places} if code else {}
    for node in nodes:
        own = [places[name] for name in (node.id, f"{node.id}_tile") if name in places]
        lines = tuple(map(_place_text, own)) if node.kind != "store" else ()
        yield replace(node, about=(*node.about, *lines))


def _place_text(place: PlaceRow) -> str:
    if place.offset is None:
        return place.memory
    return f"{place.memory} at {place.offset:,}: {place.strides}"


def _transfer(transfer: Transfer, item_bytes: Mapping[str, int], loop: int) -> MuTransfer:
    step = transfer.step
    tensor = step.tensor if isinstance(step, InputIterator) else step.output
    return MuTransfer(
        tensor=tensor,
        is_load=transfer.is_load,
        maps=" ".join(_maps(step, loop)),
        tile=text_of(transfer.tile),
        moved_bytes=transfer.moved_elements * item_bytes[tensor],
        tensor_bytes=transfer.tensor_elements * item_bytes[tensor],
    )


def _maps(step: InputIterator | Saver, loop: int) -> tuple[str, ...]:
    """Return which variable each axis of the grid splits, or makes longer, and which the loop traverses."""
    variables = step.imap if isinstance(step, InputIterator) else step.omap
    grid = " ".join(f"{a}→{v or _NONE}" for a, v in zip(AXES, variables, strict=False))
    traversed = (
        [f"loop→{step.fmap or _NONE}"] if isinstance(step, InputIterator) and loop > 1 else []
    )
    return tuple(text for text in (grid, *traversed) if text)


def _block_nodes(kernel: Kernel, tensors: BlockTensors) -> Iterable[MuNode]:
    block = kernel.block
    has_loop = block.loop > 1
    for iterator in block.iterators:
        stage = tensors.stages[iterator.output].value if has_loop else ""
        dims = tensors.dims[iterator.output]
        title = f"load {iterator.tensor}"
        about = _maps(iterator, block.loop)
        yield _node(iterator.output, "load", title, dims, about, stage=stage)
    maker = {iterator.output: iterator.output for iterator in block.iterators}
    for step in block.steps:
        maker.update(dict.fromkeys(step.outputs, step.outputs[0]))
        stage = tensors.stages[step.outputs[0]].value if has_loop else ""
        yield _block_node(step, tensors.dims, maker, stage)
    for saver in block.savers:
        yield _saver(saver, tensors.dims[saver.tile], maker, "after" if has_loop else "")


def _block_node(
    step: BlockStep, dims: Mapping[str, Dims], maker: Mapping[str, str], stage: str
) -> MuNode:
    made = dims[step.outputs[0]]
    inputs = tuple(dict.fromkeys(maker[name] for name in step.operands))
    match step:
        case Operation():
            return _operation(step, "operator", made, stage, inputs)
        case ThreadGraph():
            inner = tuple(_operation(operation, "operator", ()) for operation in step.steps)
            return MuNode(
                step.outputs[0], "thread", "in registers", (), text_of(made), inputs, stage, None,
                inner,
            )  # fmt: skip
        case RunningMax():
            about = (f"over {' '.join(step.over)}",)
            return _node(
                step.output, "accumulator", "running max", made, about, inputs=inputs, stage=stage
            )
        case Accumulate():
            along = (f"along {' '.join(step.along)}",) if step.along else ()
            rescaled = (f"rescaled by {step.rescale}",) if step.rescale else ()
            title = f"accumulate: {step.kind}"
            return _node(
                step.output, "accumulator", title, made, along + rescaled, inputs=inputs,
                stage=stage,
            )  # fmt: skip


def _saver(saver: Saver, tile: Dims, maker: Mapping[str, str], stage: str) -> MuNode:
    return _node(
        f"store {saver.output}", "store", f"store {saver.output}", tile, _maps(saver, 1),
        inputs=(maker[saver.tile],), stage=stage,
    )  # fmt: skip


def _operation(
    step: Operation,
    kind: str,
    dims: Dims,
    stage: str = "",
    inputs: tuple[str, ...] | None = None,
) -> MuNode:
    about = tuple(f"{name} {_text(value)}" for name, value in step.attrs.items())
    operands = tuple(dict.fromkeys(step.operands)) if inputs is None else inputs
    return _node(step.output, kind, step.op, dims, about, inputs=operands, stage=stage)


def _node(
    key: str,
    kind: str,
    title: str,
    dims: Dims,
    about: tuple[str, ...] = (),
    *,
    inputs: tuple[str, ...] = (),
    stage: str = "",
) -> MuNode:
    return MuNode(key, kind, title, about, text_of(dims), inputs, stage, None, ())


def _text(value: AttrValue) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_text, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def fused_kernels(stored: StoredEGraph) -> tuple[FusedUse, ...]:
    """Return the kernels that e-nodes are, those of the extracted graph first; none without ``--fuse``.

    Raises:
        InputError: a kernel in the tables is malformed.
    """
    if not has_table(stored.connection, "fused_kernel"):
        return ()
    rows = stored.connection.execute(sql("view/kernels")).fetchall()
    costs_us = _KernelCosts(stored)
    return tuple(_use(stored, costs_us, *row) for row in rows)


class _KernelCosts:
    """Costs of operators by what they are, as far as the run has them."""

    def __init__(self, stored: StoredEGraph) -> None:
        rows = stored.connection.execute("SELECT signature, cost_us FROM cost").fetchall()
        self.of_signature: Mapping[int, float] = dict(rows)
        self._signatures: dict[tuple[object, ...], int] = {
            _key(one.symbol.op, dict(one.symbol.attrs), one.operands): number
            for number, one in stored.signatures.items()
        }

    def of(self, op: str, attrs: Attrs, operands: tuple[ValueType, ...]) -> float | None:
        """Return the microseconds of an operator; None where the e-graph does not have it."""
        signature = self._signatures.get(_key(op, attrs, operands))
        return None if signature is None else self.of_signature.get(signature)


def _key(op: str, attrs: Attrs, operands: tuple[ValueType, ...]) -> tuple[object, ...]:
    return op, tuple(sorted(attrs.items())), operands


def _use(
    stored: StoredEGraph,
    costs: _KernelCosts,
    key: str,
    mugraph: str,
    dtype: str,
    chosen_uses: int,
    uses: int,
    example: Mapping[str, Any],
) -> FusedUse:
    signature = stored.signatures[example["signature"]]
    names = tuple(stored.class_text(child) for child in example["children"])
    return FusedUse(
        key=key,
        eclass=example["class"],
        enode=example["enode"],
        chosen_uses=chosen_uses,
        uses=uses,
        cost_us=costs.of_signature.get(example["signature"]),
        operands=names,
        replaced=tuple(_replaced(signature, costs)),
        drawing=drawing(decoded(json.loads(mugraph), f"kernel {key}"), dtype),
    )


def _replaced(signature: StoredSignature, costs: _KernelCosts) -> Iterator[ReplacedOperator]:
    """Return the operators that an e-node's kernel replaces, without constants."""
    operator = cast(FusedKernel, get_operator(signature.symbol.op))
    first = len(signature.operands)
    parts, kinds = operator.typed_parts(signature.operands, dict(signature.symbol.attrs))
    for number, part in enumerate(parts, first):
        if not part.operands:
            continue
        own = tuple(kinds[operand] for operand in part.operands)
        moved = [kinds[operand] for operand in dict.fromkeys(part.operands)]
        yield ReplacedOperator(
            id=str(number),
            op=part.op,
            type=type_text(kinds[number]),
            inputs=tuple(str(operand) for operand in dict.fromkeys(part.operands)),
            cost_us=costs.of(part.op, part.attrs, own),
            moved_bytes=sum(map(_bytes, (*moved, kinds[number]))),
        )


def _bytes(kind: ValueType) -> int:
    return kind.nbytes if isinstance(kind, TensorType) else sum(map(_bytes, kind))
