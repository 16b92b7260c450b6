"""What the tools that a Python has installed make of models: ``PYTHON theirs.py FOLDER`` writes JSON.

For each model of the folder and each tool the file ``MODEL.TOOL`` is written beside it. It imports
nothing of this project, so that tools may be in an environment of their own.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnx


def _sim(model: onnx.ModelProto) -> Any:
    import onnxsim

    return onnxsim.simplify(model)[0]


def _slim(model: onnx.ModelProto) -> Any:
    import onnxslim

    return onnxslim.slim(model)


def _optimizer(model: onnx.ModelProto) -> Any:
    import onnxoptimizer

    return onnxoptimizer.optimize(
        model, onnxoptimizer.get_fuse_and_elimination_passes(), fixed_point=True
    )


def _script(model: onnx.ModelProto) -> Any:
    import onnxscript.optimizer
    import onnxscript.rewriter

    return onnxscript.rewriter.rewrite(onnxscript.optimizer.optimize(model))


#: By the name of the package.
TOOLS: dict[str, Callable[[onnx.ModelProto], Any]] = {
    "onnxsim": _sim,
    "onnxslim": _slim,
    "onnxoptimizer": _optimizer,
    "onnxscript": _script,
}


def main(folder: Path) -> None:
    """Write the models, and to standard output what is installed, and which tools failed on what."""
    versions = {tool: version(tool) for tool in TOOLS if importlib.util.find_spec(tool)}
    failures: dict[str, str] = {}
    for path in sorted(folder.glob("*.onnx")):
        for tool in versions:
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    model = TOOLS[tool](onnx.load(path))
                onnx.save(model, path.with_suffix(f".{tool}"))
            except Exception as error:  # whatever a tool raises
                failures[f"{path.stem} {tool}"] = f"{type(error).__name__}: {str(error)[:200]}"
    print(json.dumps({"versions": versions, "failures": failures}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
