"""ONNX files that several commands take: blocks that ship here, light CNNs of the package onnx."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from relational_tensat.base.errors import MissingDependencyError

#: Exported from PyTorch with seeded weights, see ``export_blocks`` and ``export_transformer``.
BLOCKS = ("encoder_block", "decoder_block", "vit_block", "gated_mlp", "transformer_block")
#: Inside the onnx package: real architectures with constant weights, so that the files are small.
LIGHT = (
    "squeezenet", "shufflenet", "resnet50", "inception_v1", "inception_v2", "densenet121",
    "bvlc_alexnet", "zfnet512", "vgg19",
)  # fmt: skip
_INPUTS = Path(__file__).parents[1] / "inputs"


def model_files() -> dict[str, Path]:
    """Return the file of each of ``BLOCKS`` and ``LIGHT``.

    Raises:
        MissingDependencyError: onnx is not installed.
    """
    spec = importlib.util.find_spec("onnx")
    if spec is None or spec.origin is None:
        raise MissingDependencyError("the models are ONNX files: pip install onnx onnxruntime")
    light = Path(spec.origin).parent / "backend" / "test" / "data" / "light"
    return {
        **{name: _INPUTS / f"{name}.onnx" for name in BLOCKS},
        **{name: light / f"light_{name}.onnx" for name in LIGHT},
    }
