"""Whether a quantized model is as small, and runs on integers as much, as the original does.

onnxruntime fuses QuantizeLinear, DequantizeLinear and what is between them into kernels on integers, by
patterns: a graph that computes the same may lose them. So the graphs that its default optimizations make
of both files are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relational_tensat.base.errors import VerificationError, first_line
from relational_tensat.base.folders import temporary_folder
from relational_tensat.tensor import Graph, Node
from relational_tensat.tensor.operators import get_operator
from relational_tensat.verify.runtime import Session, open_session, runtime_errors
from relational_tensat.verify.verification import QuantizedCheck

_CONVERSIONS = frozenset({"QuantizeLinear", "DequantizeLinear"})
#: What moves elements, or takes the largest: the same on integers and on floats, and no kernel to lose.
_NEUTRAL = frozenset({
    "Concat", "Constant", "ConstantOfShape", "Expand", "Flatten", "Gather", "Identity", "MaxPool",
    "NhwcMaxPool", "Pad", "ReorderInput", "ReorderOutput", "Reshape", "Shape", "Slice", "Split", "Squeeze",
    "Transpose", "Unsqueeze",
})  # fmt: skip
#: How much larger a file may be: names and scales of what is new, never weights that are unpacked.
_MORE_BYTES, _FEW_BYTES = 1.001, 4096
#: Parts of the names of kernels on integers that do not begin with Q and a capital.
_ON_INTEGERS = ("Integer", "NBits", "Bnb4", "BlockQuantized", "DynamicQuantize")


@dataclass(frozen=True, slots=True)
class Kernels:
    """What onnxruntime runs of a model, by count.

    Attributes:
        quantized: kernels that compute with integers or packed weights.
        computing: all that compute, these among them.
        conversions: between integers and floats.
    """

    quantized: int
    computing: int
    conversions: int

    @classmethod
    def of(cls, ops: Counter[str]) -> Kernels:
        """Return the counts for how often each ONNX operator is there."""
        computing = Counter({op: n for op, n in ops.items() if op not in _CONVERSIONS | _NEUTRAL})
        return cls(
            sum(count for op, count in computing.items() if is_quantized_kernel(op)),
            computing.total(),
            sum(ops[op] for op in _CONVERSIONS),
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
        or any(map(is_quantized_kernel, _onnx_names(node)))
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
        graph = onnx.load(path, load_external_data=False).graph
        return Kernels.of(Counter(_op_types(graph)))


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
    loss = original.loss(optimized)
    size, original_size = file_bytes(after), file_bytes(before)
    return QuantizedCheck(
        f"quantized kernels in onnxruntime: {optimized.quantized}, of the original {original.quantized}",
        f"onnxruntime ends up with {loss}" if loss else "",
        f"its file has {size} bytes, the original's {original_size}"
        if size > _MORE_BYTES * original_size + _FEW_BYTES
        else "",
    )


def file_bytes(model: Path) -> int:
    """Return the size of an ONNX file and of the data files that it names."""
    from relational_tensat.formats.onnx_external import external_locations

    data = {model.parent / location for location in external_locations(model)}
    return model.stat().st_size + sum(path.stat().st_size for path in data)


def _op_types(graph: Any) -> Iterator[str]:
    for node in graph.node:
        yield node.op_type
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _op_types(attribute.g)
            for inner in attribute.graphs:
                yield from _op_types(inner)
