"""Which kernels onnxruntime runs, by kind: as its rules predict, and as it says itself.

onnxruntime can save a model as it is after its optimizations: every node of that is a call of a kernel.
What only names the same elements anew (Reshape and its like) is left out, and so is what brings elements
into the blocked layout of convolutions and back.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import onnx
import onnxruntime

from relational_tensat.tensor import Graph
from relational_tensat.tensor.graph import Node
from relational_tensat.tensor.inference import inference_nodes
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.activations import NO_ACTIVATION

_VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Shape", "Constant"})
_REORDERS = frozenset({"ReorderInput", "ReorderOutput"})
_PRODUCTS = frozenset({"MatMul", "Gemm"})
#: What a target's kernel, or an operator, is called where that is not the first of its ONNX operators.
_NAMES = {
    "ort_conv_add": "Conv+Add",
    "ort_scaled_product": "FusedMatMul",
    "ort_bias_gelu": "BiasGelu",
    "ort_quick_gelu": "QuickGelu",
    "ort_skip_layer_norm": "SkipLayerNormalization",
    "rms_norm": "SimplifiedLayerNormalization",
    "smul": "Mul",
}
#: Names that mean the same.
_SAME = {
    "FusedConv": "Conv",
    "FusedGemm": "Gemm",
    "FastGelu": "Gelu",
    "GlobalAveragePool": "ReduceMean",
    "Split": "Slice",
    "Upsample": "Resize",
}
_NO_LOG = 4


def predicted_kernels(graph: Graph) -> Counter[str]:
    """Count kernels of a graph as the target runs it (``targets.running.as_run``)."""
    kinds = (_predicted(node, len(inputs)) for node, inputs, _ in inference_nodes(graph))
    return _counted(kinds)


def saved_kernels(path: Path) -> Counter[str]:
    """Count the kernels that onnxruntime runs a model's file by, with all its optimizations on one thread.

    Raises:
        Exception: onnxruntime cannot make a session of it.
    """
    with tempfile.TemporaryDirectory(prefix="saved-kernels-") as folder:
        saved = Path(folder) / "saved.onnx"
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = _NO_LOG
        options.optimized_model_filepath = str(saved)
        options.add_session_config_entry(
            "session.optimized_model_external_initializers_file_name", "saved.data"
        )
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        model = onnx.load(saved, load_external_data=False)
    return _counted(_saved(node) for node in model.graph.node)


def disagreement(predicted: Counter[str], saved: Counter[str]) -> dict[str, tuple[int, int]]:
    """Return, by kind, how many were predicted and how many there are, where these differ."""
    kinds = sorted(predicted.keys() | saved.keys())
    return {
        kind: (predicted[kind], saved[kind]) for kind in kinds if predicted[kind] != saved[kind]
    }


def _counted(kinds: Iterable[str]) -> Counter[str]:
    return Counter(kind for kind in kinds if kind not in _VIEWS | _REORDERS)


def _predicted(node: Node, n_operands: int) -> str:
    operator = get_operator(node.op)
    name = _NAMES.get(node.op) or (*operator.onnx, str(node.attrs.get("op_type")))[0]
    if name in _PRODUCTS:
        name = "Gemm" if n_operands == 3 else "MatMul"
    act = str(node.attrs.get("act", NO_ACTIVATION))
    name = _SAME.get(name, name)
    return name if act == NO_ACTIVATION else f"{name}+{get_operator(act).onnx[0]}"


def _saved(node: onnx.NodeProto) -> str:
    name = _SAME.get(node.op_type, node.op_type)
    if name in _PRODUCTS:
        name = "Gemm" if len(node.input) == 3 else "MatMul"
    if name == "Conv" and len([each for each in node.input if each]) == 4:
        name = "Conv+Add"
    acts = [each.s.decode() for each in node.attribute if each.name == "activation"]
    return "+".join([name, *filter(None, acts)])
