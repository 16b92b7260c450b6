"""A pass of Olive that optimizes an ONNX model for onnxruntime on this CPU.

Olive finds it by a package configuration, which ``package_config`` writes:

    from olive.workflows import run
    from relational_tensat.adapters.olive_pass import package_config

    run(workflow, package_config=package_config("olive-package.json"))

where the workflow has a pass of the type ``RelationalTensat``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import olive
from olive.model import ONNXModelHandler
from olive.model.utils import resolve_onnx_path
from olive.passes import Pass
from olive.passes.pass_config import PassConfigParam

from relational_tensat.base.files import write_aside
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize


class RelationalTensat(Pass):
    """Equality saturation; the model stays as it is where nothing better is found."""

    @classmethod
    def _default_config(cls, accelerator_spec: Any) -> dict[str, PassConfigParam]:
        return {
            "options": PassConfigParam(
                type_=dict,
                default_value={},
                description="options of the run, by the names that Options.of takes",
            ),
        }

    @staticmethod
    def is_accelerator_agnostic(accelerator_spec: Any) -> bool:
        """Whether the result is the same on all machines: it is timed on this one."""
        return False

    def _run_for_config(
        self, model: ONNXModelHandler, config: Any, output_model_path: str
    ) -> ONNXModelHandler:
        path = Path(resolve_onnx_path(output_model_path, Path(model.model_path).name))
        optimize(model.model_path, Options.of(**config.options), output=path)
        if path.with_name(f"{path.name}.data").exists():
            return ONNXModelHandler(model_path=str(path.parent), onnx_file_name=path.name)
        return ONNXModelHandler(model_path=str(path))


def package_config(path: str | os.PathLike[str]) -> Path:
    """Write Olive's own package configuration, with this pass in it, and return where it is."""
    own = Path(olive.__file__).parent / "olive_config.json"
    config = json.loads(own.read_text(encoding="utf-8"))
    config["passes"]["RelationalTensat"] = {
        "module_path": f"{__name__}.RelationalTensat",
        "supported_providers": ["CPUExecutionProvider"],
        "supported_accelerators": ["cpu"],
        "supported_precisions": ["*"],
        "supported_algorithms": [],
        "supported_quantization_encodings": [],
    }
    target = Path(path)
    with write_aside(target) as aside:
        (aside / target.name).write_text(json.dumps(config, indent=1), encoding="utf-8")
    return target
