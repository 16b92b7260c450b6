"""A pass of onnx-ir that optimizes a model.

import onnx_ir.passes
from relational_tensat.adapters.onnx_ir_pass import OptimizePass

optimized = onnx_ir.passes.Sequential(OptimizePass())(model).model
"""

from __future__ import annotations

from pathlib import Path

import onnx_ir
from onnx_ir.passes import FunctionalPass, PassResult

from relational_tensat.base.folders import temporary_folder
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize
from relational_tensat.run.result import Result


class OptimizePass(FunctionalPass):
    """Returns the optimized model; a copy of the given one where nothing better is found.

    Attributes:
        results: of the runs, in order.
    """

    def __init__(self, options: Options | None = None) -> None:
        """Take the options of a run; by default the result is timed in onnxruntime on this CPU."""
        super().__init__()
        self._options = options
        self.results: list[Result] = []

    def call(self, model: onnx_ir.Model) -> PassResult:
        """Optimize a model.

        Raises:
            RelationalTensatError: as ``optimize``.
        """
        with temporary_folder() as folder:
            path = Path(folder) / "optimized.onnx"
            result = optimize(model, self._options, output=path)
            self.results.append(result)
            optimized = onnx_ir.load(path)
            onnx_ir.external_data.load_to_model(optimized)  # the files are gone when the folder is
        return PassResult(optimized, modified=not result.unchanged)
