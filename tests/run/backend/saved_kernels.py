"""Which kernels onnxruntime runs, by kind: as its rules predict, and as it says itself.

onnxruntime can save a model as it is after its optimizations: every node of that is a call of a kernel.
What only names the same elements again (Reshape and its like) is left out, and what is computed of shapes
alone, which a graph with known sizes has as constants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import onnx

from relational_tensat.cost import Configuration
from relational_tensat.cost.key import graph_configurations
from relational_tensat.formats.onnx_sizes import size_nodes
from relational_tensat.rules.backends.onnxruntime.blocks import (
    OF_OPERATORS,
    SILU,
    BlockedActivation,
)
from relational_tensat.rules.backends.onnxruntime.kernel_choice import kernels_of
from relational_tensat.tensor import Graph
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.traits import NO_ACTIVATION
from relational_tensat.verify.sessions import optimized_graph

_VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Shape", "Constant"})
_PRODUCTS = frozenset({"MatMul", "Gemm"})
#: What a backend's kernel, or an operator, is called where that is not the first of its ONNX operators.
_NAMES = {
    "ort_scaled_product": "FusedMatMul",
    "ort_bias_gelu": "BiasGelu",
    "ort_quick_gelu": "QuickGelu",
    "ort_skip_layer_norm": "SkipLayerNormalization",
    "ort_sum": "Sum",
    "ort_attention": "Attention",
    "ort_heads_attention": "Attention",
    "ort_rotary": "RotaryEmbedding",
    "ort_heads_rotary": "RotaryEmbedding",
    "ort_reduce_mean": "ReduceMean",
    "rms_norm": "SimplifiedLayerNormalization",
    "smul": "Mul",
    "ort_integer_product": "MatMulIntegerToFloat",
    "ort_quantized_conv": "QLinearConv",
    "ort_quantized_product": "QGemm",
    "ort_quantized_mean": "QLinearGlobalAveragePool",
    "ort_quantized_add": "QLinearAdd",
    "ort_quantized_mul": "QLinearMul",
    "ort_nhwc_max_pool": "MaxPool",
    "ort_to_blocks": "ReorderInput",
    "ort_from_blocks": "ReorderOutput",
    "ort_spread": "Resize",
    "ort_blocked_spread": "Resize",
    "ort_blocked_conv": "Conv",
    "ort_blocked_conv_add": "Conv+Add",
}
_BLOCKED = {kernel.name: op for op, kernel in OF_OPERATORS.items()}
#: Names that mean the same.
_SAME = {
    "FusedConv": "Conv",
    "FusedGemm": "Gemm",
    "FastGelu": "Gelu",
    "GlobalAveragePool": "ReduceMean",
    "Split": "Slice",
    "Upsample": "Resize",
    "NhwcMaxPool": "MaxPool",
}
#: Kernels that do what two do, one after the other.
_BOTH = {"DynamicQuantizeMatMul": ("DynamicQuantizeLinear", "MatMulIntegerToFloat")}


def predicted_kernels(graph: Graph) -> Counter[str]:
    """Count kernels of a graph as the backend runs it (``run.backend_costs``)."""
    kernels = (
        kernel
        for configuration in graph_configurations(graph)
        for kernel in kernels_of(configuration, tells_computed=True)
    )
    return _counted(map(_predicted, kernels))


def saved_kernels(path: Path) -> Counter[str]:
    """Count the kernels that onnxruntime runs a model's file by, with all its optimizations on one thread.

    Raises:
        Exception: onnxruntime cannot make a session of it.
    """
    graph = optimized_graph(path)
    of_sizes = {name for node in size_nodes(graph) for name in node.output}
    saved = (_saved(node) for node in graph.node if not of_sizes.intersection(node.output))
    return _counted(each for kind in saved for each in _BOTH.get(kind, (kind,)))


def disagreement(predicted: Counter[str], saved: Counter[str]) -> dict[str, tuple[int, int]]:
    """Return, by kind, how many were predicted and how many there are, where these differ."""
    kinds = sorted(predicted.keys() | saved.keys())
    return {
        kind: (predicted[kind], saved[kind]) for kind in kinds if predicted[kind] != saved[kind]
    }


def _counted(kinds: Iterable[str]) -> Counter[str]:
    return Counter(kind for kind in kinds if kind not in _VIEWS)


def _predicted(kernel: Configuration) -> str:
    attrs = dict(kernel.attrs)
    act = str(attrs.get("act", NO_ACTIVATION))
    if kernel.op == BlockedActivation.name:
        return "QuickGelu" if act == SILU else get_operator(act).onnx[0]
    operator = get_operator(_BLOCKED.get(kernel.op, kernel.op))
    name = _NAMES.get(kernel.op) or (*operator.onnx, str(attrs.get("op_type")))[0]
    if name in _PRODUCTS:
        name = "Gemm" if len(kernel.inputs) == 3 else "MatMul"
    name = _SAME.get(name, name)
    return name if act == NO_ACTIVATION else f"{name}+{get_operator(act).onnx[0]}"


def _saved(node: onnx.NodeProto) -> str:
    name = _SAME.get(node.op_type, node.op_type)
    if name in _PRODUCTS:
        name = "Gemm" if len(node.input) == 3 else "MatMul"
    if name == "Conv" and len(node.input) == 4:
        name = "Conv+Add"
    acts = [each.s.decode() for each in node.attribute if each.name == "activation"]
    return "+".join([name, *filter(None, acts)])
