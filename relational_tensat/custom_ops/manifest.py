"""The manifest of a folder of kernels: its content is data, and no file beside it is looked at.

``model.opt.kernels`` beside ``model.opt.onnx`` has ``manifest.json``: the digest of the model, and for
each custom op its name, the shapes of its calls, the sizes of loops around it and the types of integers if
there are any, and its μGraph. The C beside it is for people: where the kernels run, it is made again from
the μGraphs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.base.files import whole_content, write_aside
from relational_tensat.custom_ops.library import (
    KernelOp,
    KernelUse,
    Shape,
    checked_op,
    sources_of,
)
from relational_tensat.custom_ops.overrides import OVERRIDES, checked_override, override_sources
from relational_tensat.formats.frontend import file_digest
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.mugraph_json import Fields, decoded, encoded

MANIFEST, FORMAT = "manifest.json", "relational_tensat custom ops 1"
_MOST_BYTES, _MOST_OPS = 64 << 20, 4096


def folder_of(model: Path) -> Path:
    """Return the folder of a model's kernels: ``model.opt.kernels`` of ``model.opt.onnx``."""
    return model.with_suffix(".kernels")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a manifest.

    Attributes:
        ops: custom ops that stand for local functions of the model.
        overrides: kernels of blocks of elements, by the operators of onnxruntime that they replace.
    """

    ops: tuple[KernelOp, ...] = ()
    overrides: Mapping[str, MuGraph] = field(default_factory=dict)


def write_manifest(
    ops: Sequence[KernelOp], model: Path, overrides: Mapping[str, MuGraph] | None = None
) -> Path:
    """Write the manifest of a model's kernels, and their C, into the folder beside it; return the folder.

    Args:
        ops, overrides: as ``Manifest`` has them.
        model: the file, as it stays.

    Raises:
        InputError: it cannot be written, or has files of others; C cannot say a kernel.
    """
    folder = folder_of(model)
    check_place(model)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from error
    content = {
        "format": FORMAT,
        "model": file_digest(model),
        "ops": [
            {
                "name": op.name,
                "uses": [{"operands": use.operands, "results": use.results} for use in op.uses],
                **({"loops": op.loops, "block": op.block} if op.loops else {}),
                **({"quantized": op.quantized} if op.quantized else {}),
                "mugraph": encoded(op.graph),
            }
            for op in ops
        ],
        "overrides": {name: encoded(graph) for name, graph in (overrides or {}).items()},
    }
    files = {**sources_of(ops), **_named(override_sources(overrides or {}))}
    with write_aside(folder / MANIFEST) as aside:
        for name, text in files.items():
            (aside / name).write_text(text, encoding="utf-8")
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (aside / MANIFEST).write_text(text + "\n", encoding="utf-8")
    for left in _sources_in(folder):  # of a run before
        if left.name not in files:
            left.unlink(missing_ok=True)
    return folder


def check_place(model: Path) -> None:
    """Check that the folder beside a model is free for kernels.

    Raises:
        InputError: it has files of others.
    """
    folder = folder_of(model)
    is_own = (folder / MANIFEST).is_file()
    if folder.exists() and not is_own and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists and is no folder of kernels, it is not overwritten")


def remove_stale(model: Path) -> None:
    """Remove the kernels beside a model that was written again without any: its old file had them.

    Whatever else is in the folder stays.

    Raises:
        InputError: they cannot be removed.
    """
    folder = folder_of(model)
    try:
        content = json.loads(whole_content(folder / MANIFEST, _MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        return
    try:
        for path in (folder / MANIFEST, *_sources_in(folder)):
            path.unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()
    except OSError as error:
        raise InputError(
            f"{folder}: has kernels of another {model.name}, and cannot be removed: {error.strerror}"
        ) from error


def _sources_in(folder: Path) -> list[Path]:
    others = ("custom_op.c", "library.c", "overrides.c")
    return [*folder.glob("kernel_*.c"), *(folder / name for name in others)]


def _named(files: Mapping[str, str]) -> dict[str, str]:
    """Return the files of the library of overrides with names that no other file of the folder has."""
    return {"overrides.c" if name == "library.c" else name: text for name, text in files.items()}


def read_manifest(model: Path) -> Manifest:
    """Return the kernels beside a model, each checked; none where there is no manifest.

    Raises:
        InputError: it is of another file, malformed, or has a kernel that is not right.
    """
    path = folder_of(model) / MANIFEST
    try:
        content = json.loads(whole_content(path, _MOST_BYTES))
        digest = file_digest(model)
    except FileNotFoundError:
        return Manifest()
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: no manifest of kernels: {error}") from error
    document = Fields(content, str(path), ("format", "model", "ops", "overrides"))
    if document.text("format") != FORMAT:
        raise InputError(f"{path}: format {document.text('format')!r}, expected {FORMAT!r}")
    if document.text("model") != digest:
        raise InputError(f"{path}: its kernels are those of another {model.name}")
    ops = document.items("ops")
    if len(ops) > _MOST_OPS:
        raise InputError(f"{path}: {len(ops)} kernels, expected {_MOST_OPS} at most")
    read = tuple(_op(op, f"{path}: op {place}") for place, op in enumerate(ops))
    if len({op.name for op in read}) < len(read):
        raise InputError(f"{path}: two kernels of one name")
    named = document.value("overrides", {})
    of_runtime = Fields(named, f"{path}: overrides", tuple(OVERRIDES))
    where = f"{path}: overrides"
    graphs = {name: decoded(of_runtime.value(name), f"{where}: {name}") for name in named}
    return Manifest(read, {name: checked_override(name, graph) for name, graph in graphs.items()})


def _op(content: Any, where: str) -> KernelOp:
    op = Fields(content, where, ("name", "uses", "loops", "block", "quantized", "mugraph"))
    uses = []
    for place, each in enumerate(op.items("uses")):
        use = Fields(each, f"{where}: use {place}", ("operands", "results"))
        uses.append(KernelUse(_shapes(use, "operands"), _shapes(use, "results")))
    graph = decoded(op.value("mugraph"), where)
    try:
        loops, block = (op.wholes("loops"), op.whole("block")) if "loops" in content else ((), 0)
        kinds = Fields(
            op.value("quantized", {}), f"{where}: quantized", (*graph.inputs, *graph.outputs)
        )
        integers = {name: kinds.text(name) for name in op.value("quantized", {})}
        return checked_op(KernelOp(op.text("name"), graph, tuple(uses), loops, block, integers))
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _shapes(use: Fields, key: str) -> tuple[Shape, ...]:
    rows = use.items(key)
    named = Fields({str(place): row for place, row in enumerate(rows)}, f"{use.where}: {key}")
    return tuple(named.wholes(str(place)) for place in range(len(rows)))
