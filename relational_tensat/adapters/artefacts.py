"""Optimized files, kept by what they were made from: a second process finds them, and optimizes nothing."""

from __future__ import annotations

import hashlib
import pickle
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from relational_tensat import __version__
from relational_tensat.base.errors import InputError, RelationalTensatError, first_line
from relational_tensat.base.folders import PrivateFolder, check_own, temporary_folder, user_cache
from relational_tensat.run.options import ONNXRUNTIME, Options
from relational_tensat.run.pipeline import optimize
from relational_tensat.run.result import Result
from relational_tensat.tensor import Graph
from relational_tensat.verify.sessions import Session, open_session, runtime_errors

_T = TypeVar("_T")
_MODEL, _RESULT = "model.onnx", "result.pickle"


@dataclass(frozen=True, slots=True)
class Artefact(Generic[_T]):
    """An optimized file.

    Attributes:
        path: where it is; large weights are beside it.
        result: how it was found. Where another call found it, its graphs are without weights.
        beside: other values that the exporter returned.
    """

    path: Path
    result: Result
    beside: _T

    @property
    def runtime(self) -> str:
        """The runtime that won the race of runtimes, if there was one; else onnxruntime."""
        race = self.result.runtimes
        return ONNXRUNTIME if race is None else race.chosen.runtime

    @property
    def has_kernels(self) -> bool:
        """Whether kernels of its own are beside it."""
        return self.result.library is not None and self.result.library.is_taken


def artefact(
    key: str, name: str, export: Callable[[Path], tuple[_T, Mapping[str, int]]], options: Options
) -> Artefact[_T]:
    """Return what is kept for a key; where there is nothing, export a model and optimize it.

    Args:
        key: a digest of all that decides what the file computes.
        name: the model's name in reports.
        export: writes the model into the file that it is given; returns what is kept beside it, which can
            be pickled, and sizes of the model's dynamic dimensions.
        options: of the run; with the version of this package they are part of the key.

    Raises:
        InputError: the folder of this user's caches cannot be used, or others may have written it.
        RelationalTensatError: the model cannot be exported, or optimized.
    """
    root = user_cache() / "modules"
    import onnxruntime  # for its version: what is fastest there

    text = repr((key, __version__, onnxruntime.__version__, options))
    entry = root / hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    kept = _read(entry)
    if kept is not None:
        return Artefact(entry / _MODEL, *kept)
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{root}: cannot be made: {error.strerror or error}") from None
    with temporary_folder() as exported, PrivateFolder(root, "module") as aside:
        source = exported / f"{name}.onnx"
        beside, sizes = export(source)
        if options.purpose.runs_on in (None, ONNXRUNTIME):
            _check_kernels(source)
        if not options.model.dims:
            options = options.replace(dims=sizes)
        try:
            result = optimize(source, options, output=aside.path / _MODEL)
        except RelationalTensatError as error:  # the file that it names is gone by then
            error.args = (str(error).replace(str(source), name), *error.args[1:])
            raise
        library = result.files.library
        if library is not None and library.folder is not None:
            library = replace(library, folder=entry / library.folder.name)
        files = replace(
            result.files, source=None, output=entry / _MODEL, tables=None, library=library
        )
        result = replace(result, source=name, files=files)
        with (aside.path / _RESULT).open("wb") as file:
            pickle.dump((_light(result), beside), file)
        with suppress(OSError):  # another process was as fast, and its file is as good
            aside.path.rename(entry)
    return Artefact(entry / _MODEL, result, beside)


def _check_kernels(exported: Path) -> None:
    """Check that onnxruntime has kernels for all of a model: no search would find any.

    Raises:
        InputError: it has not, as for some products of bfloat16.
    """
    try:
        open_session(exported, 1, Session.AS_WRITTEN)
    except runtime_errors() as error:
        # Other errors are said better where the model is read.
        if type(error).__name__ == "NotImplemented":
            raise InputError(f"onnxruntime does not run this: {first_line(error)}") from error


def _read(entry: Path) -> tuple[Result, Any] | None:
    """Return what is kept in a folder; None where there is nothing, or it is from another version.

    Raises:
        InputError: others may have written it.
    """
    path = entry / _RESULT
    if not path.exists():
        return None
    for place in (entry, path, entry / _MODEL):
        check_own(place)
    try:
        with warnings.catch_warnings():  # of classes that change in a later version
            warnings.simplefilter("ignore")
            result, beside = pickle.loads(path.read_bytes())
    except Exception:  # a pickle of another Python, or one that was cut, may raise anything
        return None
    return (result, beside) if (entry / _MODEL).exists() else None


def _light(result: Result) -> Result:
    """Return a result without the weights, which are in the file."""
    return replace(
        result, graph=_without_data(result.graph), original=_without_data(result.original)
    )


def _without_data(graph: Graph) -> Graph:
    weights = {name: replace(weight, data=None) for name, weight in graph.weights.items()}
    return replace(graph, weights=weights, origin=None)
