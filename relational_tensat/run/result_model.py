"""A result as an ONNX model: the written and compared one, or else its graph in ONNX's words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError
from relational_tensat.base.files import check_file, write_aside
from relational_tensat.base.outputs import check_outputs
from relational_tensat.formats import copy_model, need_onnx, save_model, to_onnx_model
from relational_tensat.formats.frontend import MODEL, check_output, is_onnx
from relational_tensat.run.result_groups import Files
from relational_tensat.tensor import Graph

if TYPE_CHECKING:
    import onnx

#: Protobuf writes no message of 2 GiB; weights of a larger model go to a file beside it.
_MOST_BYTES = 1_500_000_000


def result_model(files: Files, graph: Graph, *, is_unchanged: bool) -> onnx.ModelProto:
    """Return the result as an ONNX model.

    Raises:
        UsageError: the run's model is a ``.json`` graph, and so is its result.
        InputError: the file is gone, or the graph has no ONNX form.
        MissingDependencyError: onnx is not installed.
    """
    if files.model is not None:
        return files.model
    file = _file(files, is_unchanged=is_unchanged)
    if file is None and files.source is not None and not is_onnx(files.source):
        raise UsageError(
            f"{files.source}: is no ONNX model, expected one: graph is the result, and "
            "save('NAME.onnx') writes it as ONNX"
        )
    need_onnx()
    if file is None:
        return to_onnx_model(graph)
    import onnx

    check_file(file)
    return onnx.load(str(file))


def save_result(files: Files, graph: Graph, path: Path, *, is_unchanged: bool) -> None:
    """Write the result as ``.onnx`` or ``.json``, completely or not at all.

    Raises:
        UsageError: the path is unusable, or a dynamic model is to be ``.json``.
        InputError: the written file is gone, or it cannot be written.
        MissingDependencyError: onnx is needed, and not installed.
    """
    check_output(path, files.source)
    check_outputs([(path, MODEL)], [] if files.source is None else [files.source])
    if not is_onnx(path):
        _check_fixed(files, path, is_unchanged=is_unchanged)
        save_model(graph, path)
        return
    if files.model is not None:
        write_model(files.model, path)
        return
    file = _file(files, is_unchanged=is_unchanged)
    if file is None:
        save_model(graph, path)
        return
    check_file(file)
    if not (path.exists() and path.samefile(file)):
        copy_model(file, path)


def write_model(model: onnx.ModelProto, path: Path) -> None:
    """Write a model that is in memory; large weights to ``NAME.onnx.data``.

    Raises:
        InputError: it cannot be written.
    """
    with write_aside(path) as aside:
        output = aside / path.name
        if sum(len(tensor.raw_data) for tensor in model.graph.initializer) < _MOST_BYTES:
            output.write_bytes(model.SerializeToString())
            return
        import onnx

        copy = onnx.ModelProto()  # saving takes the weights out of it
        copy.CopyFrom(model)
        location = f"{path.name}.data"
        onnx.save_model(copy, str(output), save_as_external_data=True, location=location)


def _file(files: Files, *, is_unchanged: bool) -> Path | None:
    """Return the ONNX file that is the result, or None."""
    if files.output is not None and is_onnx(files.output):
        return files.output
    is_source = is_unchanged and files.output is None
    return files.source if is_source and files.source and is_onnx(files.source) else None


def _check_fixed(files: Files, path: Path, *, is_unchanged: bool) -> None:
    file = _file(files, is_unchanged=is_unchanged)
    if files.model is None and file is None:
        return
    from relational_tensat.formats.onnx_frame import is_dynamic  # needs onnx

    model = files.model
    if model is None and file is not None:
        import onnx

        check_file(file)
        model = onnx.load(str(file), load_external_data=False)
    if model is not None and is_dynamic(model):
        raise UsageError(
            f"{path}: the result has dynamic dimensions, and .json has none: expected a .onnx file, "
            "or a run with the option static"
        )
