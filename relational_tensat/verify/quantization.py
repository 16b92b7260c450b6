"""Whether a quantized model is as small, and runs on integers as much, as the original does, and no more.

onnxruntime fuses QuantizeLinear, DequantizeLinear and what is between them into kernels on integers, by
patterns: a graph that computes the same may lose them. It may gain them, too, and then onnxruntime rounds
the operands that the original has as floats: weights of products between the two, or operands of packed
weights. So the graphs that its default optimizations make of both files are compared.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from relational_tensat.base.errors import VerificationError, first_line
from relational_tensat.base.folders import temporary_folder
from relational_tensat.tensor import Graph, Node
from relational_tensat.tensor.operators import get_operator
from relational_tensat.verify.sessions import Session, open_session, runtime_errors
from relational_tensat.verify.verification import QuantizedCheck

_CONVERSIONS = frozenset({"QuantizeLinear", "DequantizeLinear"})
#: Operators that move elements, or take the largest: the same on integers and on floats, and no kernel to
#: lose.
_NEUTRAL = frozenset({
    "Concat", "Constant", "ConstantOfShape", "Expand", "Flatten", "Gather", "Identity", "MaxPool",
    "NhwcMaxPool", "Pad", "ReorderInput", "ReorderOutput", "Reshape", "Shape", "Slice", "Split", "Squeeze",
    "Transpose", "Unsqueeze",
})  # fmt: skip
#: How much larger a file may be: names, metadata and scales of what is new, never unpacked weights.
_MORE_BYTES, _FEW_BYTES = 1.005, 4096
#: Parts of the names of kernels on integers that do not begin with Q and a capital.
_ON_INTEGERS = ("Integer", "NBits", "Bnb4", "BlockQuantized", "DynamicQuantize")
#: Those that quantize operands which are floats.
_QUANTIZE_OPERANDS = ("NBits", "Bnb4", "BlockQuantized", "DynamicQuantize")
#: Those that add up products, by parts of their names.
_PRODUCTS = ("Conv", "MatMul", "Gemm", "Attention", "LSTM")
#: Bytes of an element of integers that stand for reals, by the name of its type.
_BYTES = {"INT8": 1.0, "UINT8": 1.0, "INT32": 4.0, "INT4": 0.5, "UINT4": 0.5}


@dataclass(frozen=True, slots=True)
class Kernels:
    """The kernels that onnxruntime runs of a model, by count.

    Attributes:
        quantized: kernels that compute with integers or packed weights.
        computing: all that compute, these among them.
        conversions: between integers and floats.
        products: those of the quantized ones that add up products.
        quantizing: those that quantize operands.
        rounded_bytes: of weights that are integers in it, and not in the file.
    """

    quantized: int
    computing: int
    conversions: int
    products: int = 0
    quantizing: int = 0
    rounded_bytes: float = 0.0

    @classmethod
    def of(cls, ops: Counter[str], rounded_bytes: float = 0.0) -> Kernels:
        """Return the counts for how often each ONNX operator is there."""
        computing = Counter({op: n for op, n in ops.items() if op not in _CONVERSIONS | _NEUTRAL})
        quantized = Counter({op: n for op, n in computing.items() if is_quantized_kernel(op)})
        return cls(
            quantized.total(),
            computing.total(),
            sum(ops[op] for op in _CONVERSIONS),
            sum(n for op, n in quantized.items() if any(part in op for part in _PRODUCTS)),
            sum(n for op, n in ops.items() if any(part in op for part in _QUANTIZE_OPERANDS)),
            rounded_bytes,
        )

    def loss(self, after: Kernels) -> str:
        """Return what another model, made of this one, has instead; "" where nothing was lost.

        Quantized kernels may become fewer by as many as all kernels do: two are merged, or one is not
        needed.
        """
        lost = self.quantized - after.quantized
        if lost > max(0, self.computing - after.computing):
            return f"{after.quantized} quantized kernels, the original {self.quantized}"
        if after.computing > self.computing:
            return f"{after.computing} kernels that compute, the original {self.computing}"
        if after.conversions > self.conversions:
            return (
                f"{after.conversions} conversions between integers and floats, the original"
                f" {self.conversions}"
            )
        return ""

    def gain(self, after: Kernels, *, saturates: bool) -> str:
        """Return what onnxruntime rounds in another model, made of this one, and not here; "" for nothing.

        Each can grow alone: kernels that are merged or dropped hide one that is new.

        Args:
            saturates: whether sums of products of integers are not exact.
        """
        if after.rounded_bytes > self.rounded_bytes:
            return (
                f"{after.rounded_bytes:,g} bytes of weights that it quantized itself, the original "
                f"{self.rounded_bytes:,g}"
            )
        if after.quantizing > self.quantizing:
            return (
                f"{after.quantizing} kernels that quantize operands, the original {self.quantizing}"
            )
        if saturates and after.products > self.products:
            return (
                f"{after.products} products of integers, whose sums saturate on this processor, "
                f"the original {self.products}"
            )
        return ""


@cache
def sums_saturate() -> bool:
    """Whether onnxruntime's products of uint8 and int8 are wrong on this processor where they are large.

    Without instructions for it (VNNI), it adds pairs of them in 16 bits.
    """
    from onnx import TensorProto, helper, numpy_helper

    depth = 64
    weights = numpy_helper.from_array(np.full((depth, 1), 127, np.int8), "w")
    x = helper.make_tensor_value_info("x", TensorProto.UINT8, [1, depth])
    y = helper.make_tensor_value_info("y", TensorProto.INT32, [1, 1])
    product = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    graph = helper.make_graph([product], "product", [x], [y], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = open_session(model.SerializeToString(), 1, Session.AS_WRITTEN)
    (result,) = session.run(None, {"x": np.full((1, depth), 255, np.uint8)})
    return bool(result.item() != depth * 127 * 255)


def is_quantized_kernel(op_type: str) -> bool:
    """Whether an ONNX operator computes with integers that stand for reals, or with packed weights."""
    if op_type == "DynamicQuantizeLinear":
        return False
    starts_with_q = op_type[:1] == "Q" and op_type[1:2].isupper()
    return starts_with_q or any(part in op_type for part in _ON_INTEGERS)


def is_quantized(graph: Graph) -> bool:
    """Whether a graph has quantized values."""
    return any(
        node.op == "quantize"
        or get_operator(node.op).unpacks(node.attrs)
        or any(op in _CONVERSIONS or is_quantized_kernel(op) for op in _onnx_names(node))
        for node in graph.nodes
    )


def _onnx_names(node: Node) -> tuple[str, ...]:
    own = node.attrs.get("op_type")
    return get_operator(node.op).onnx if own is None else (str(own),)


def runtime_kernels(model: Path, threads: int) -> Kernels | None:
    """Return what onnxruntime's default optimizations make of a model; None where it cannot say.

    Raises:
        VerificationError: the model cannot be run.
    """
    import onnx

    with temporary_folder() as folder:
        path = folder / "optimized.onnx"
        try:
            open_session(model, threads, Session.AS_BY_DEFAULT, optimized=path)
        except runtime_errors() as error:
            raise VerificationError(
                f"onnxruntime cannot run {model}: {first_line(error)}"
            ) from error
        if not path.exists():
            return None
        run, file = (onnx.load(each, load_external_data=False).graph for each in (path, model))
        rounded_bytes = max(0.0, _integer_bytes(run) - _integer_bytes(file))
        return Kernels.of(Counter(node.op_type for node in _nodes(run)), rounded_bytes)


def compare_quantized(before: Path, after: Path, threads: int) -> QuantizedCheck | None:
    """Compare the kernels and the sizes of an original's and an optimized model's file.

    None where onnxruntime cannot say, or cannot run the original itself with its optimizations on.

    Raises:
        VerificationError: the optimized one cannot be run.
    """
    try:
        original = runtime_kernels(before, threads)
    except VerificationError:
        return None
    optimized = runtime_kernels(after, threads)
    if original is None or optimized is None:
        return None
    loss, gain = original.loss(optimized), original.gain(optimized, saturates=sums_saturate())
    size, original_size = file_bytes(after), file_bytes(before)
    return QuantizedCheck(
        f"quantized kernels in onnxruntime: {optimized.quantized}, of the original {original.quantized}",
        f"onnxruntime ends up with {loss}" if loss else "",
        f"onnxruntime ends up with {gain}" if gain else "",
        f"its file has {size} bytes, the original's {original_size}"
        if size > _MORE_BYTES * original_size + _FEW_BYTES
        else "",
    )


def file_bytes(model: Path) -> int:
    """Return the size of an ONNX file and of the data files that it names."""
    from relational_tensat.formats.onnx_external import external_locations

    data = {model.parent / location for location in external_locations(model)}
    return model.stat().st_size + sum(path.stat().st_size for path in data)


def _integer_bytes(graph: Any) -> float:
    """Return the bytes of matrices and vectors of integers that stand for reals, once for each kernel's.

    So counted, they are as many where equal ones are one, and where onnxruntime copies them for each
    reader. Zero points do not count.
    """
    import onnx

    nodes = list(_nodes(graph))
    tensors = {each.name: each for inner in _graphs(graph) for each in inner.initializer}
    tensors |= {
        node.output[0]: attribute.t
        for node in nodes
        for attribute in node.attribute
        if node.op_type == "Constant" and attribute.HasField("t")
    }
    readers: dict[str, list[Any]] = defaultdict(list)
    for node in nodes:
        is_conversion = node.op_type in _CONVERSIONS
        for name in node.input[:1] if is_conversion else node.input:
            readers[name].append(node)

    @cache
    def uses(name: str) -> int:
        return sum(
            max(1, uses(node.output[0])) if node.op_type in _CONVERSIONS | _NEUTRAL else 1
            for node in readers[name]
        )

    total = 0.0
    for name, tensor in tensors.items():
        kind = onnx.TensorProto.DataType.Name(tensor.data_type)
        if len(tensor.dims) >= (1 if kind == "INT32" else 2):
            total += _BYTES.get(kind, 0.0) * math.prod(tensor.dims) * uses(name)
    return total


def _nodes(graph: Any) -> Iterator[Any]:
    """Yield a graph's nodes and those of the graphs in them."""
    for each in _graphs(graph):
        yield from each.node


def _graphs(graph: Any) -> Iterator[Any]:
    """Yield a graph and those in its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _graphs(inner)
