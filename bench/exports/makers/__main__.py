"""``PYTHON -m bench.exports.makers NAME FOLDER``: makes one model, and inputs for it, in a folder.

PYTHON is an interpreter that has torch, torchvision, timm, transformers, diffusers, onnx, onnxscript
and onnxruntime. Writes ``NAME.onnx`` (the exporter of today adds ``NAME.onnx.data``) and ``NAME.npz``
with two sets of inputs, ``0/INPUT`` and ``1/INPUT``, the second at the other sizes of dynamic dimensions.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
import torch

from bench.exports.catalogue import ALL_EXPORTS, EXPORTS, Export
from bench.exports.makers.architecture import Architecture
from bench.exports.makers.exporters import write_onnx
from bench.exports.makers.quantization import quantize
from bench.exports.makers.seeds import CALIBRATION_SEED, INPUT_SEED, seed_weights, settle_norms

#: Sets of inputs that activations are observed on, where their scales are calibrated.
_CALIBRATION_SETS = 4
#: Images that running statistics are taken of.
_EXAMPLES = 8


def main(arguments: Sequence[str]) -> int:
    """Make the model of that name; return the exit code."""
    name, folder = arguments
    export = next(export for export in ALL_EXPORTS if export.name == name)
    make(export, Path(folder))
    return 0


def make(export: Export, folder: Path) -> None:
    """Write a model and two sets of inputs for it."""
    architecture = _architecture(export)
    dims = {name: first for name, (first, _) in export.dims.items()}
    other_dims = {name: second for name, (_, second) in export.dims.items()}
    # PyTorch takes a dimension of size 1 for fixed, so that examples have the other sizes.
    example = _inputs(architecture, other_dims, CALIBRATION_SEED)
    path = folder / f"{export.name}.onnx"
    if export.variant in ("float32", "float16"):
        write_onnx(architecture, example, export, path)
    else:
        calibration = [
            _inputs(architecture, dims, CALIBRATION_SEED + index)
            for index in range(_CALIBRATION_SETS)
        ]
        with tempfile.TemporaryDirectory() as temporary:
            original = Path(temporary) / "float32.onnx"
            write_onnx(architecture, example, export, original)
            quantize(original, path, export.variant, calibration)
    sets = [
        _inputs(architecture, sizes, INPUT_SEED + index)
        for index, sizes in enumerate((dims, other_dims))
    ]
    arrays = {
        f"{index}/{name}": tensor.numpy()
        for index, values in enumerate(sets)
        for name, tensor in values.items()
    }
    np.savez(folder / f"{export.name}.npz", **arrays)


def _architecture(export: Export) -> Architecture:
    module = import_module(f"bench.exports.makers.architectures.{export.library}")
    torch.manual_seed(0)  # the libraries' own initializations draw from this generator
    architecture: Architecture = getattr(module, export.architecture)()
    seed_weights(architecture.module)
    architecture.module.eval()
    if export not in EXPORTS:  # those are kept as they were timed
        dims = {name: second for name, (_, second) in export.dims.items()}
        example = _inputs(architecture, dims | {"batch": _EXAMPLES}, CALIBRATION_SEED)
        settle_norms(architecture.module, list(example.values()))
    return architecture.in_float16() if export.variant == "float16" else architecture


def _inputs(architecture: Architecture, dims: dict[str, int], seed: int) -> dict[str, torch.Tensor]:
    return architecture.inputs(torch.Generator().manual_seed(seed), dims)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
