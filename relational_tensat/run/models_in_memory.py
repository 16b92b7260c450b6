"""Models that are in no file: for the length of a run they are in one, in a private folder.

A run reads files, compares files, and writes a file that was compared. So a model in memory takes the same
way as any other, and what is written is read back. That also is the way of a file whose result is wanted as
a model, and in no file of the caller's.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from relational_tensat.base.errors import InputError, RelationalTensatError, UsageError, first_line
from relational_tensat.base.folders import temporary_folder
from relational_tensat.base.outputs import DefaultOutput
from relational_tensat.formats import need_onnx
from relational_tensat.formats.frontend import is_onnx
from relational_tensat.run.options import Options
from relational_tensat.run.result import Result
from relational_tensat.tensor import Graph

if TYPE_CHECKING:
    import onnx

#: The kinds of models that a run takes: a graph, the path of a file, or the content of such a file. A model
#: of ``onnx_ir`` is one, too; it is in no type, as that package need not be installed.
AnyModel: TypeAlias = "Graph | str | os.PathLike[str] | bytes | onnx.ModelProto"
_EXPECTED = (
    "expected a path, an onnx.ModelProto, an onnx_ir.Model, bytes of an ONNX file, or a Graph"
)
_NAME = "model"
_NOT_IN_NAMES = re.compile(r"[^\w.-]+", re.ASCII)
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run reads its model, and where it writes.

    Attributes:
        source: the model as a run takes it.
        output: where the result is written.
        name: the model's name in reports, if not that in ``source``.
        folder: a folder that is removed when the run has ended, or None.
        is_own: the result is written in that folder, to be read back.
    """

    source: Graph | str | Path
    output: str | Path | DefaultOutput | None
    name: str = ""
    folder: Path | None = None
    is_own: bool = False

    def take(self, result: Result) -> Result:
        """Return the result as it is without the folder: with its model in memory."""
        if self.folder is None:
            return result
        files = result.files
        if is_onnx(files.output):
            files = replace(files, model=result.model)
        if self.is_own:
            machine = None if files.machine is None else replace(files.machine, data=None)
            files = replace(files, output=None, machine=machine)
        if self.name:
            files = replace(files, source=None)
        notes = tuple(self.without_folder(note) for note in result.notes)
        rejections = tuple(
            replace(each, why=self.without_folder(each.why)) for each in result.rejections
        )
        return replace(
            result,
            source=self.name or result.source,
            files=files,
            outcome=replace(result.outcome, rejections=rejections),
            notes=notes,
        )

    def without_folder(self, text: str) -> str:
        """Return a text that names no file of the folder by its path."""
        return text if self.folder is None else text.replace(f"{self.folder}{os.sep}", "")


@contextmanager
def placed(
    model: Any, output: str | Path | DefaultOutput | None, options: Options
) -> Iterator[Place]:
    """Give the place of a model, which may be in memory, for the length of a run.

    Raises:
        UsageError: it is no model.
        InputError: it is one that cannot be written.
        MissingDependencyError: it is an ONNX model, and onnx is not installed.
    """
    if isinstance(model, Graph):
        yield Place(model, output)
        return
    source = _path(model)
    if source is not None and not (output is None and _needs_file(source, options)):
        yield Place(model if isinstance(model, str) else source, output)
        return
    with temporary_folder() as folder:
        name, stem, is_own = "", _NAME, output is None
        if source is None:
            need_onnx()
            graph = getattr(model, "graph", None)
            name = str(getattr(graph, "name", None) or _NAME)
            stem = _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME] or _NAME
            source = folder / f"{stem}.onnx"
            _write(model, source, name)
        output = folder / f"{stem}.opt.onnx" if is_own else output
        place = Place(source, output, name, folder, is_own)
        try:
            yield place
        except RelationalTensatError as error:
            error.args = (place.without_folder(str(error)), *error.args[1:])
            raise


def _path(model: Any) -> Path | None:
    """Return the path that a model is named by; None for one in memory."""
    if isinstance(model, str | os.PathLike):
        text = os.fspath(model)
        if not isinstance(text, str):
            raise UsageError(f"the model is {model!r}, {_EXPECTED}")
        return Path(text)
    is_in_memory = isinstance(model, bytes | bytearray | memoryview)
    if is_in_memory or _is_proto(model) or _is_onnx_ir(model):
        return None
    raise UsageError(f"the model is of type {type(model).__qualname__}, {_EXPECTED}")


def _needs_file(source: Path, options: Options) -> bool:
    """Whether a result has to be written to be what the options say: dynamic, or of another version.

    Kernels of the model's own are made for fixed sizes, by which dynamic dimensions are read then.
    """
    if not is_onnx(source):
        return False
    stays_dynamic = not (options.model.static or options.fusion.fuse)
    return options.output.opset is not None or (stays_dynamic and _is_dynamic(source))


def _is_dynamic(source: Path) -> bool:
    """Whether an ONNX file has dynamic dimensions; its faults are found when it is read."""
    need_onnx()
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # ships no types

    from relational_tensat.formats.onnx_external import map_file, read_skeleton
    from relational_tensat.formats.onnx_frame import is_dynamic
    from relational_tensat.formats.onnx_wire import WireError

    with suppress(InputError, DecodeError, WireError):
        return is_dynamic(read_skeleton(map_file(source))[0])
    return False


def _is_proto(model: Any) -> bool:
    kind = getattr(sys.modules.get("onnx"), "ModelProto", None)
    return kind is not None and isinstance(model, kind)


def _is_onnx_ir(model: Any) -> bool:
    kind = getattr(sys.modules.get("onnx_ir"), "Model", None)
    return kind is not None and isinstance(model, kind)


def _write(model: Any, path: Path, name: str) -> None:
    """Write a model that is in memory.

    Raises:
        InputError: it cannot be, or its weights are not in memory.
    """
    if isinstance(model, bytes | bytearray | memoryview):
        path.write_bytes(model)
        return
    if not _is_proto(model):
        import onnx_ir  # it is one of its models

        try:
            onnx_ir.save(model, path, external_data=f"{path.stem}.data")
        except Exception as error:  # of any library that its tensors are from
            raise InputError(f"{name}: onnx_ir cannot write it: {first_line(error)}") from error
        return
    from relational_tensat.formats.onnx_external import has_external_data
    from relational_tensat.run.result_model import write_model

    if has_external_data(model):
        raise InputError(
            f"{name}: its weights are in other files, expected a model that has them "
            "(onnx.load with load_external_data=True), or its path"
        )
    write_model(model, path)
