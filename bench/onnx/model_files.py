"""The models of ``python -m bench onnx``: where their files are."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Sequence
from pathlib import Path

from relational_tensat.base.errors import MissingDependencyError, check_choice

#: Exported from PyTorch with seeded weights, see ``export_blocks`` and ``export_transformer``.
BLOCKS = ("encoder_block", "decoder_block", "vit_block", "gated_mlp", "transformer_block")
#: Inside the onnx package: real architectures with constant weights, so that the files are small.
LIGHT = (
    "squeezenet", "shufflenet", "resnet50", "inception_v1", "inception_v2", "densenet121",
    "bvlc_alexnet", "zfnet512", "vgg19",
)  # fmt: skip
_INPUTS = Path(__file__).parents[1] / "inputs"
_LIGHT_FOLDER = Path("backend", "test", "data", "light")


def add_model_files(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments ``MODEL`` that ``model_files`` takes."""
    parser.add_argument(
        "models",
        metavar="MODEL",
        nargs="*",
        help=f"of {', '.join((*BLOCKS, *LIGHT))}, or an .onnx file; default: all",
    )


def model_files(names: Sequence[str]) -> dict[str, Path]:
    """Return the file of each model; of all if none is named.

    Args:
        names: of ``BLOCKS`` and ``LIGHT``, or paths of ``.onnx`` files.

    Raises:
        UsageError: one is neither; names the nearest.
        MissingDependencyError: onnx is not installed.
    """
    paths = {}
    for name in names or (*BLOCKS, *LIGHT):
        path = Path(name)
        if path.suffix == ".onnx":
            paths[path.stem] = path
            continue
        check_choice("model", name, (*BLOCKS, *LIGHT))
        if name in BLOCKS:
            paths[name] = _INPUTS / f"{name}.onnx"
        else:
            paths[name] = _onnx_package() / _LIGHT_FOLDER / f"light_{name}.onnx"
    return paths


def _onnx_package() -> Path:
    spec = importlib.util.find_spec("onnx")
    if spec is None or spec.origin is None:
        raise MissingDependencyError("the models are ONNX files: pip install onnx onnxruntime")
    return Path(spec.origin).parent
