"""How large an ONNX model is, and in which versions it is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx

from relational_tensat.formats.onnx_external import external_locations, map_file, read_skeleton
from relational_tensat.formats.onnx_frame import CONSTANTS_APART_IR_VERSION
from relational_tensat.formats.onnx_names import all_nodes
from relational_tensat.formats.onnx_opset import read_imports
from relational_tensat.tensor.types import Array


@dataclass(frozen=True, slots=True)
class FileFigures:
    """Figures of an ONNX model.

    Attributes:
        operators: how many nodes each operator type has, subgraphs included.
        bytes: of the file, and of the files that its tensors are in.
        opset: the version of the default operator set; 0 if it has none.
        ir_version: that of the file format.
        default_inputs: those with a value that a caller may replace: initializers, too.
    """

    operators: Mapping[str, int]
    bytes: int
    opset: int
    ir_version: int
    default_inputs: tuple[str, ...] = ()

    @property
    def nodes(self) -> int:
        """How many nodes the model has, subgraphs included."""
        return sum(self.operators.values())


def figures_of_file(path: Path) -> FileFigures:
    """Return the figures of a valid model's file.

    Raises:
        InputError: it cannot be read.
    """
    model, _ = read_skeleton(map_file(path))
    files = [path, *(path.parent / name for name in external_locations(path))]
    return _figures(model, sum(file.stat().st_size for file in files))


def figures_of_skeleton(model: onnx.ModelProto, large_weights: Iterable[Array]) -> FileFigures:
    """Return the figures of a model that was not saved yet."""
    return _figures(model, model.ByteSize() + sum(weight.nbytes for weight in large_weights))


def _figures(model: onnx.ModelProto, n_bytes: int) -> FileFigures:
    operators = dict(Counter(node.op_type for node in all_nodes(model.graph.node)))
    opset = read_imports(model.opset_import).get("", 0)
    return FileFigures(operators, n_bytes, opset, model.ir_version, _default_inputs(model))


def _default_inputs(model: onnx.ModelProto) -> tuple[str, ...]:
    """Return the inputs that have a value; in the first versions all constants were inputs, too."""
    if model.ir_version < CONSTANTS_APART_IR_VERSION:
        return ()
    constants = {tensor.name for tensor in model.graph.initializer}
    constants |= {tensor.values.name for tensor in model.graph.sparse_initializer}
    return tuple(value.name for value in model.graph.input if value.name in constants)
