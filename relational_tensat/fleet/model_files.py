"""The files of models: those that a command names, and those that go with each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from relational_tensat.base.errors import UsageError
from relational_tensat.fleet.task import Files
from relational_tensat.formats.file_digest import files_beside
from relational_tensat.formats.frontend import FRONTENDS, is_onnx

#: Up to so many bytes, a model goes to a machine of a cluster with its task; a larger one is read there.
_MOST_SENT_BYTES = 100 << 20


def model_files(models: Sequence[str | Path]) -> dict[str, Path]:
    """Return the files of models by the names of their results.

    Raises:
        UsageError: nothing is there, or two have one name.
    """
    found: dict[str, Path] = {}
    for text in models:
        for name, path in _files(Path(text)):
            if name in found and found[name] != path:
                raise UsageError(
                    f"{found[name]} and {path}: both results would be {name!r}, expected other names"
                )
            found[name] = path
    return found


def _files(path: Path) -> list[tuple[str, Path]]:
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.is_file() and is_onnx(each))
        if not files:
            raise UsageError(f"{path}: has no .onnx file")
        return [(each.relative_to(path).as_posix(), each) for each in files]
    if path.exists():
        if path.suffix.lower() not in FRONTENDS:
            raise UsageError(f"{path}: expected a model ({' or '.join(FRONTENDS)}), or a folder")
        return [(path.name, path)]
    pattern = path.relative_to(path.anchor)
    matches = sorted(Path(path.anchor).glob(str(pattern))) if pattern.parts else []
    if not matches:
        raise UsageError(f"{path}: no such file or folder")
    return [pair for match in matches for pair in _files(match)]


def sizes_of(source: Path) -> dict[str, int]:
    """Return the bytes of each file of a model, by its name beside the model's."""
    paths = [source, *files_beside(source)]
    return {
        str(path.relative_to(source.parent)): path.stat().st_size for path in paths if path.exists()
    }


def contents_of(source: Path) -> Files | None:
    """Return a model's files; None where they are large, or not all of them are below its folder."""
    sizes = sizes_of(source)
    folder = source.parent.resolve()
    is_inside = all((folder / name).resolve().is_relative_to(folder) for name in sizes)
    if sum(sizes.values()) > _MOST_SENT_BYTES or not is_inside:
        return None
    return tuple((name, (source.parent / name).read_bytes()) for name in sizes)
