"""Reading and writing models: ``model.json`` (see ``json_model``) and ONNX."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.errors import MissingDependencyError, UsageError
from relational_tensat.base.outputs import model_suffix
from relational_tensat.formats.json_graph import read_json, write_json
from relational_tensat.formats.same_file import copy_model
from relational_tensat.tensor import Graph

if TYPE_CHECKING:
    import onnx

    from relational_tensat.formats.dynamic.sized_model import DynamicModel

__all__ = [
    "copy_model",
    "from_onnx_model",
    "load_dynamic",
    "load_model",
    "opset_of",
    "save_model",
    "to_onnx_model",
]


def load_model(
    path: Path, dims: Mapping[str, int] | None = None, *, keep_overridable: bool = False
) -> Graph:
    """Read a tensor graph from a ``.json`` or ``.onnx`` file.

    Args:
        dims: sizes of an ONNX model's dynamic dimensions, by the name that the model gives them,
            or as ``INPUT:AXIS`` for those without a name.
        keep_overridable: an ONNX model's inputs that have a default value stay inputs with one; else they
            are weights.

    Raises:
        UsageError: the suffix is another one, or ``dims`` names a dimension that the model lacks.
        InputError: the file cannot be read or is malformed, or a dimension is not fixed.
        MissingDependencyError: it is an ONNX file and onnx is not installed.
    """
    path = Path(path)
    if model_suffix(path) == ".json":
        graph = read_json(path)
        if dims:
            names = ", ".join(dims)
            raise UsageError(f"{path}: has no dynamic dimensions, but {names} was given")
        return graph
    need_onnx()
    from relational_tensat.formats.onnx_read import read_onnx

    return read_onnx(path, dims or {}, keep_overridable=keep_overridable)


def load_dynamic(
    path: Path, dims: Mapping[str, int] | None = None, *, keep_overridable: bool = False
) -> DynamicModel | Graph:
    """Read an ONNX file with dynamic dimensions at several sizes; one without as ``load_model`` does.

    Args:
        dims: sizes to optimize at; others get defaults.
        keep_overridable: as for ``load_model``.

    Raises:
        UsageError, InputError, MissingDependencyError: as ``load_model``.
        SizeError: it is another graph at other sizes.
    """
    need_onnx()
    from relational_tensat.formats.dynamic.size_reader import read_dynamic

    return read_dynamic(path, dims or {}, keep_overridable=keep_overridable)


def save_model(graph: Graph, path: Path, opset: int | None = None) -> None:
    """Write a tensor graph to a ``.json`` or ``.onnx`` file, completely or not at all.

    What the graph still has of the ONNX file that it was read from is written as it is there.

    Args:
        opset: the version of ONNX's default operator set; None for that of the file that the graph was
            read from, or the first after it that has what is new.

    Raises:
        UsageError: the suffix is another one, or that version cannot be written.
        InputError: the file cannot be written, or the graph has no ONNX form.
        MissingDependencyError: it is an ONNX file and onnx is not installed.
    """
    path = Path(path)
    if model_suffix(path) == ".json":
        write_json(graph, path)
        return
    need_onnx()
    from relational_tensat.formats.onnx_write import save_onnx

    save_onnx(graph, path, opset)


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
    copy = type(model)()
    copy.CopyFrom(model)
    return read_model(copy, dims or {}, where)


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
