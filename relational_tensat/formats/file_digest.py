"""The digest of a model's file, with those that its weights are in."""

from __future__ import annotations

import hashlib
from pathlib import Path

from relational_tensat.base.errors import InputError
from relational_tensat.formats.frontend import is_onnx

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
