"""PyTorch's two exporters, as users call them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bench.exports.catalogue import Export
from bench.exports.makers.architecture import Architecture

#: What the exporters write by default, or, for the legacy one, what most files around have.
_OPSETS = {"legacy": 17, "dynamo": 18}
#: Dimensions that no other follows from: the exporter derives the others, or how they are bound.
_FREE = ("batch", "sequence", "past")


def write_onnx(
    architecture: Architecture, example: Mapping[str, Tensor], export: Export, path: Path
) -> None:
    """Write a module as ONNX, with the dynamic dimensions that the export names."""
    names = list(example)
    dims = architecture.dims if export.dims else {}
    settings: dict[str, Any] = {
        "input_names": names,
        "output_names": list(architecture.outputs),
        "opset_version": _OPSETS[export.exporter],
    }
    if export.exporter == "legacy":
        settings |= {"dynamo": False, "dynamic_axes": {n: dict(axes) for n, axes in dims.items()}}
    else:
        settings |= {"dynamo": True, "verbose": False}
        if dims:
            settings["dynamic_shapes"] = (tuple(_dynamic(dims.get(name, {})) for name in names),)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # PyTorch advises its newer exporter, and of traced sizes
        torch.onnx.export(architecture.module, tuple(example.values()), str(path), **settings)


def _dynamic(axes: Mapping[int, str]) -> dict[int, Any]:
    return {
        axis: name if name in _FREE else torch.export.Dim.DYNAMIC for axis, name in axes.items()
    }
