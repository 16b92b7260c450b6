"""Reading and writing models: ``model.json`` (see ``json_values``), ONNX, and what ``frontend`` is told of.

The names below are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from relational_tensat.base.lazy import names_on_first_use

if TYPE_CHECKING:
    from relational_tensat.formats.frontend import copy_model, load_model, save_model
    from relational_tensat.formats.onnx_frontend import (
        from_onnx_model,
        load_dynamic,
        need_onnx,
        opset_of,
        to_onnx_model,
    )

__all__ = [
    "copy_model",
    "from_onnx_model",
    "load_dynamic",
    "load_model",
    "need_onnx",
    "opset_of",
    "save_model",
    "to_onnx_model",
]

__getattr__ = names_on_first_use(
    __name__,
    {
        "frontend": ("copy_model", "load_model", "save_model"),
        "onnx_frontend": (
            "from_onnx_model",
            "load_dynamic",
            "need_onnx",
            "opset_of",
            "to_onnx_model",
        ),
    },
)
