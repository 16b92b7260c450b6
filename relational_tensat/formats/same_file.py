"""Copying a model's file as it is, byte for byte, with the data files that it refers to."""

from __future__ import annotations

import filecmp
import shutil
from pathlib import Path

from relational_tensat.base.errors import InputError
from relational_tensat.base.files import real_path, write_aside
from relational_tensat.formats.frontend import frontend_of


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
