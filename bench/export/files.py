"""What the exporters of ``inputs/*.onnx`` share: seeded weights, and files that come out the same.

Not part of the bench's commands and not run by tests: it needs PyTorch, the files are committed.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence
from pathlib import Path

import onnx
import torch
from torch import Tensor, nn

SEED = 20261121
INPUTS = Path(__file__).parents[1] / "inputs"


def seed_weights(model: nn.Module) -> None:
    """Draw every parameter; a bias that stayed 0 or a norm that stayed 1 would hide errors."""
    generator = torch.Generator().manual_seed(SEED)
    for name, parameter in model.named_parameters():
        values = torch.randn(parameter.shape, generator=generator)
        with torch.no_grad():
            if parameter.ndim > 1:
                parameter.copy_(values / math.sqrt(parameter[0].numel()))
            else:
                parameter.copy_(0.1 * values + (1.0 if "norm.weight" in name else 0.0))


def export(
    model: nn.Module,
    examples: Sequence[Tensor],
    names: Sequence[str],
    path: Path,
    *,
    opset: int,
    dynamo: bool,
) -> None:
    """Write a model with seeded weights to ``path``, everything inside the one file.

    Args:
        examples: tensors of the inputs' shapes and element types.
        names: of the inputs, in the same order; the one output is called ``y``.
        opset: version of ONNX's operators. LayerNorm is one operator from 17 on, GELU from 20 on.
        dynamo: PyTorch's exporter of today, which starts at opset 18; else the one by tracing,
            which wrote most of the files that are around.
    """
    seed_weights(model.eval())
    if dynamo:
        proto = _export_program(model, examples, names, opset)
    else:
        proto = _export_trace(model, examples, names, opset)
    _strip(proto)
    proto.graph.name = path.stem
    onnx.checker.check_model(proto, full_check=True)
    onnx.save_model(proto, path, save_as_external_data=False)


def _export_program(
    model: nn.Module, examples: Sequence[Tensor], names: Sequence[str], opset: int
) -> onnx.ModelProto:
    program = torch.onnx.export(
        model,
        tuple(examples),
        dynamo=True,
        opset_version=opset,
        input_names=list(names),
        output_names=["y"],
        verbose=False,
    )
    return program.model_proto


def _export_trace(
    model: nn.Module, examples: Sequence[Tensor], names: Sequence[str], opset: int
) -> onnx.ModelProto:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch advises its newer exporter
        torch.onnx.export(
            model,
            tuple(examples),
            file,
            dynamo=False,
            opset_version=opset,
            input_names=list(names),
            output_names=["y"],
        )
    return onnx.load_model_from_string(file.getvalue())


def _strip(proto: onnx.ModelProto) -> None:
    """Drop paths and line numbers of the machine that exported the model."""
    for node in proto.graph.node:
        del node.metadata_props[:]
        node.ClearField("doc_string")
    for value in [*proto.graph.value_info, *proto.graph.input, *proto.graph.output]:
        del value.metadata_props[:]
    del proto.graph.metadata_props[:]
    del proto.metadata_props[:]
