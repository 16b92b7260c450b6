"""Frontends: a way in and out for the files of models, chosen by their suffix.

``FRONTENDS`` has them; ``docs/extending.md`` has an example of another one. Nothing that takes long is
imported here: paths are checked before any work is done. A model's digest is of all its files.
"""

from __future__ import annotations

import filecmp
import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from relational_tensat.base.errors import InputError, UsageError, nearest
from relational_tensat.base.files import check_file, real_path, write_aside
from relational_tensat.base.lazy import Registry
from relational_tensat.base.outputs import DefaultOutput, Written

if TYPE_CHECKING:
    from relational_tensat.tensor import Graph


class Frontend(Protocol):
    """Reads and writes the files of one format.

    Attributes:
        is_onnx: whether its files are ONNX models, which onnxruntime loads as they are.
        is_binary: whether a file may be one that does not say at its beginning what it is.
    """

    is_onnx: bool
    is_binary: bool

    def read(self, path: Path, dims: Mapping[str, int]) -> Graph:
        """Read a graph.

        Args:
            dims: sizes of dynamic dimensions, as ``load_model`` takes them.

        Raises:
            UsageError: there is no such dimension.
            InputError: the file cannot be read or is malformed.
            MissingDependencyError: a package that it needs is not installed.
        """

    def write(self, graph: Graph, path: Path, opset: int | None) -> None:
        """Write a graph, completely or not at all.

        Args:
            opset: the version of ONNX's operators, as ``save_model`` takes it.

        Raises:
            UsageError: the format is only read.
            InputError: the file cannot be written, or the graph cannot be said in this format.
            MissingDependencyError: a package that it needs is not installed.
        """

    def data_files(self, path: Path) -> list[str]:
        """Return the files that belong to a model's file, as it names them, relative to its folder."""


#: By suffix.
FRONTENDS: Registry[Frontend] = Registry(
    "suffix of a model",
    {
        ".json": "relational_tensat.formats.json_graph:FRONTEND",
        ".onnx": "relational_tensat.formats.onnx_frontend:FRONTEND",
    },
)


def frontend_of(path: Path) -> Frontend:
    """Return what reads and writes a file.

    Raises:
        UsageError: it is of no known format.
    """
    return FRONTENDS[_model_suffix(path)]


def _model_suffix(path: Path) -> str:
    """Return which suffix of ``FRONTENDS`` a model's file has.

    Raises:
        UsageError: it has another one.
    """
    suffix = path.suffix.lower()
    if suffix in FRONTENDS:
        return suffix
    if suffix in _FOREIGN:
        raise UsageError(f"{path}: {_FOREIGN[suffix]}")
    hint = nearest(suffix, FRONTENDS) if suffix else ""
    known = " and ".join(FRONTENDS)
    raise UsageError(f"{path}: the suffix {suffix!r} is not one of {known}{hint}")


_TORCH = "PyTorch's, expected a .onnx file: torch.onnx.export(model, inputs, 'NAME.onnx') makes one"
_TENSORFLOW = "TensorFlow's, expected a .onnx file: python -m tf2onnx.convert makes one of it"
_PACKED = "is packed, expected a .onnx or .json file: unpack it first"
#: Kinds of files of other suffixes, and the advice for each.
_FOREIGN = {
    **dict.fromkeys((".pt", ".pth", ".pt2", ".ckpt", ".safetensors"), _TORCH),
    **dict.fromkeys((".h5", ".keras", ".pb", ".tflite"), _TENSORFLOW),
    **dict.fromkeys((".gz", ".zip", ".tar", ".tgz", ".xz"), _PACKED),
    ".data": "weights of a .onnx file, expected that file itself",
    ".ort": "onnxruntime's own format, expected the .onnx file that it was made from",
    ".duckdb": "a run's database, expected a model; run --resume continues a run, view shows it",
    ".rules": "a rule file, expected a model; --rules names rule files",
}


def is_onnx(path: str | Path | None) -> bool:
    """Whether a file is an ONNX model by its suffix."""
    frontend = None if path is None else FRONTENDS.get(Path(path).suffix.lower())
    return frontend is not None and frontend.is_onnx


def _is_unmarked(path: Path) -> bool:
    frontend = FRONTENDS.get(path.suffix.lower())
    return frontend is not None and frontend.is_binary


#: By what options say that they write a model.
MODEL = Written("a model", FRONTENDS, _is_unmarked)


def check_model(path: Path) -> None:
    """Check that a model may be in a file, without reading it.

    Raises:
        UsageError: its suffix is of no known format.
        InputError: it does not exist or is a folder.
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder, expected a model file{_models_in(path)}")
    if not path.suffix and not path.exists():
        raise InputError(f"{path}: no such file, expected a .onnx or .json model")
    _model_suffix(path)
    check_file(path)


def _models_in(folder: Path) -> str:
    """Return which models a folder has, or what it is."""
    names = sorted(entry.name for entry in folder.iterdir())
    if "saved_model.pb" in names:
        return ": python -m tf2onnx.convert --saved-model makes a .onnx file of it"
    if models := [name for name in names if name.endswith(".onnx")]:
        more = f" and {len(models) - 1} more" if len(models) > 1 else ""
        return f"; it has {folder / models[0]}{more}"
    if any(Path(name).suffix in (".safetensors", ".pt", ".pth") for name in names):
        return f"; its weights are {_TORCH}"
    return "; it has no .onnx file"


def check_output(output: str | Path | DefaultOutput | None, model: object) -> Path | None:
    """Return the output's path, if the model can be written there.

    Args:
        model: its path, or a graph.

    Raises:
        UsageError: the suffix is of no known format, the folder does not exist, or the path is a
            folder or the model itself.
    """
    if output is None:
        return None
    path = output.path if isinstance(output, DefaultOutput) else Path(output)
    suffix = path.suffix.lower()
    if suffix not in FRONTENDS:
        hint = nearest(suffix, FRONTENDS)
        raise UsageError(f"{path}: the output's suffix must be {' or '.join(FRONTENDS)}{hint}")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {str(path.parent)!r} does not exist")
    if path.is_dir():
        raise UsageError(f"{path}: is a folder, expected a file name")
    if isinstance(model, str | Path) and path.exists() and path.samefile(Path(model)):
        raise UsageError(f"{path}: the output would overwrite the model")
    return path


def load_model(
    path: Path, dims: Mapping[str, int] | None = None, *, keep_overridable: bool = False
) -> Graph:
    """Read a tensor graph from a ``.json`` or ``.onnx`` file, or another that ``FRONTENDS`` knows.

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
    if keep_overridable and is_onnx(path):
        from relational_tensat.formats.onnx_frontend import FRONTEND

        return FRONTEND.read(Path(path), dims or {}, keep_overridable=True)
    return frontend_of(Path(path)).read(Path(path), dims or {})


def save_model(graph: Graph, path: Path, opset: int | None = None) -> None:
    """Write a tensor graph to a ``.json`` or ``.onnx`` file, completely or not at all.

    Parts that the graph still has of its ONNX file are written as they are there.

    Args:
        opset: the version of ONNX's default operator set; None for that of the file that the graph was read
            from, or the first after it that has all new operators.

    Raises:
        UsageError: the suffix is another one, or that version cannot be written.
        InputError: the file cannot be written, or the graph has no ONNX form.
        MissingDependencyError: it is an ONNX file and onnx is not installed.
    """
    frontend_of(Path(path)).write(graph, Path(path), opset)


class OtherDataError(InputError):
    """Another file is where a data file of the copy would be."""


def copy_model(source: Path, target: Path) -> tuple[Path, ...]:
    """Copy a model, completely or not at all, to where its format may be written.

    A model names its data files, so these keep their names, beside the copy; one that is there
    already with the same content stays.

    Returns:
        The data files that were copied.

    Raises:
        InputError: a file cannot be read or written.
        OtherDataError: another data file of that name is there; nothing is written.
    """
    data = frontend_of(source).data_files(source)
    is_elsewhere = real_path(source.parent) != real_path(target.parent)
    missing_names = [name for name in data if is_elsewhere and _is_missing(source, target, name)]
    for name in missing_names:
        path = target.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_aside(path) as aside:
            shutil.copyfile(source.parent / name, aside / path.name)
    with write_aside(target) as aside:
        shutil.copyfile(source, aside / target.name)
    return tuple(target.parent / name for name in missing_names)


def _is_missing(source: Path, target: Path, name: str) -> bool:
    path = target.parent / name
    if not path.exists():
        return True
    if filecmp.cmp(source.parent / name, path, shallow=False):
        return False
    raise OtherDataError(f"{path} has other content than {source.parent / name}")


_READ_BYTES = 1 << 20


def file_digest(model: Path) -> str:
    """Return the SHA-256 of a model's file and of the files of its weights.

    A file that is no model has none.

    Raises:
        OSError: a file cannot be read.
    """
    digest = hashlib.sha256()
    for path in (model, *files_beside(model)):
        with path.open("rb") as file:
            while block := file.read(_READ_BYTES):
                digest.update(block)
    return digest.hexdigest()


def files_beside(model: Path) -> list[Path]:
    """Return the files that the weights of a model's file are in; of what is no model, none."""
    if not is_onnx(model):
        return []
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # ships no types

    from relational_tensat.formats.onnx_external import external_locations  # both need onnx
    from relational_tensat.formats.onnx_wire import WireError

    try:
        return [model.parent / name for name in external_locations(model)]
    except (InputError, DecodeError, WireError):
        return []
