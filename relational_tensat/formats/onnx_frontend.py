"""The frontend of ONNX files, and ONNX models in memory; onnx is imported when there is one."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.errors import MissingDependencyError

if TYPE_CHECKING:
    import onnx

    from relational_tensat.formats.dynamic.sized_model import DynamicModel
    from relational_tensat.tensor import Array, Graph


class OnnxFrontend:
    """Reads and writes ``.onnx`` files."""

    is_onnx = is_binary = True

    def read(self, path: Path, dims: Mapping[str, int], *, keep_overridable: bool = False) -> Graph:
        """Read a graph, with these sizes of dynamic dimensions."""
        need_onnx()
        from relational_tensat.formats.onnx_read import read_onnx

        return read_onnx(path, dims, keep_overridable=keep_overridable)

    def write(self, graph: Graph, path: Path, opset: int | None) -> None:
        """Write a graph; parts that it still has of its file are written as they are there."""
        need_onnx()
        from relational_tensat.formats.onnx_write import save_onnx

        save_onnx(graph, path, opset)

    def data_files(self, path: Path) -> list[str]:
        """Return where the files are that hold its tensors."""
        from relational_tensat.formats.onnx_external import external_locations  # needs onnx

        return external_locations(path)


def load_dynamic(
    path: Path,
    dims: Mapping[str, int] | None = None,
    *,
    keep_overridable: bool = False,
    inputs: Mapping[str, Array] | None = None,
) -> DynamicModel | Graph:
    """Read an ONNX file with dynamic dimensions at several sizes; one without as ``load_model`` does.

    Args:
        dims: sizes to optimize at; others get defaults.
        keep_overridable: as for ``load_model``.
        inputs: values of some inputs at these sizes, if the model runs with certain numbers only.

    Raises:
        UsageError, InputError, MissingDependencyError: as ``load_model``.
        SizeError: it is another graph at other sizes.
    """
    need_onnx()
    from relational_tensat.formats.dynamic.size_reader import read_dynamic

    return read_dynamic(path, dims or {}, keep_overridable=keep_overridable, inputs=inputs)


def from_onnx_model(
    model: onnx.ModelProto, dims: Mapping[str, int] | None = None, where: str = "model"
) -> Graph:
    """Return the tensor graph of an ONNX model in memory; ``where`` names it in messages.

    Raises:
        UsageError, InputError, MissingDependencyError: as ``load_model``.
    """
    need_onnx()
    from relational_tensat.formats.onnx_read import check_model, read_model

    check_model(model, where)
    return read_model(model, dims or {}, where)


def to_onnx_model(graph: Graph, opset: int | None = None) -> onnx.ModelProto:
    """Return the graph as an ONNX model in memory, unchecked.

    Args:
        opset: as for ``save_model``.

    Raises:
        UsageError, InputError, MissingDependencyError: as ``save_model``.
    """
    need_onnx()
    from relational_tensat.formats.onnx_write import write_model

    return write_model(graph, opset)


def opset_of(graph: Graph) -> int | None:
    """Return the version of ONNX's default operator set that a graph was read in, None for none.

    Raises:
        MissingDependencyError: onnx is not installed.
    """
    need_onnx()
    from relational_tensat.formats.onnx_metadata import written_imports

    return written_imports(graph.metadata).get("")


def need_onnx() -> None:
    """Check that ONNX files can be read.

    Raises:
        MissingDependencyError: onnx, or onnxruntime, is not installed.
    """
    packages = [name for name in ("onnx", "onnxruntime") if importlib.util.find_spec(name) is None]
    if packages:
        raise MissingDependencyError(
            f"ONNX files need {' and '.join(packages)}: pip install 'relational-tensat[onnx]'"
        )


FRONTEND = OnnxFrontend()
