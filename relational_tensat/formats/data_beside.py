"""A model with its weights in a file beside it, moved to where it belongs."""

from __future__ import annotations

import filecmp
import re
from collections.abc import Collection
from itertools import chain, count
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it ships no types
from onnx.external_data_helper import uses_external_data

from relational_tensat.base.errors import InputError
from relational_tensat.base.files import real_path
from relational_tensat.formats.onnx_external import all_tensors, external_locations
from relational_tensat.formats.onnx_wire import WireError


def move_with_data(
    model_file: Path, data: Path, target: Path, kept: Collection[Path] = ()
) -> Path | None:
    """Move a model and its data to ``target`` and ``TARGET.data``, both from a folder of one file system.

    What has the data's name already may be another model's: if it has other content, the data goes to
    ``TARGET.1.data``, and so on, and the model names that. The model is moved last: at no time is one there
    whose data is not. Then the data of a model that was at ``target`` goes, if it is called so.

    Args:
        kept: data that stays in any case.

    Returns:
        The data's place; None where the model has no data beside it.
    """
    replaced = _data_of_replaced(target) - {real_path(path) for path in kept}
    place = _place_of(data, target) if data.exists() else None
    if place is not None:
        _name_data(model_file, place.name)
        if not place.exists():
            data.replace(place)
    model_file.replace(target)
    for path in replaced - {place and real_path(place)}:
        path.unlink(missing_ok=True)
    return place


def _place_of(data: Path, target: Path) -> Path:
    """Return the first of the names that data may have where nothing is, or the same."""
    names = chain((f"{target.name}.data",), (f"{target.name}.{k}.data" for k in count(1)))
    return next(place for place in map(target.with_name, names) if not _is_other(place, data))


def _is_other(place: Path, data: Path) -> bool:
    if place.is_symlink() or place.is_dir():
        return True
    return place.exists() and not filecmp.cmp(place, data, shallow=False)


def _name_data(model_file: Path, name: str) -> None:
    """Let a model's tensors be in a file of another name."""
    model = onnx.load(model_file, load_external_data=False)
    for tensor in filter(uses_external_data, all_tensors(model)):
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = name
    model_file.write_bytes(model.SerializeToString())


def _data_of_replaced(target: Path) -> set[Path]:
    """Return the files by the names above that a model at ``target`` has its data in."""
    own = re.compile(rf"{re.escape(target.name)}(\.\d+)?\.data")
    try:
        names = external_locations(target) if target.is_file() else []
    except (InputError, DecodeError, WireError):
        return set()
    return {real_path(target.parent / name) for name in names if own.fullmatch(name)}
