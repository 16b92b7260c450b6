"""The result of a run with dynamic dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.tensor import Array, Graph

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, slots=True, eq=False)
class SizedResult:
    """The chosen graph at each of a dynamic model's sizes.

    Attributes:
        graphs: at the base sizes first; nothing in them is folded.
        file: all of them in one, with dynamic dimensions: a skeleton, and its large weights.
    """

    graphs: tuple[Graph, ...]
    file: tuple[onnx.ModelProto, Mapping[str, Array]]

    def save(self, path: Path) -> None:
        """Write the file.

        Raises:
            InputError, ModelError: it cannot be written, or is not valid.
        """
        from relational_tensat.formats.onnx_write import save_skeleton  # needs onnx

        skeleton, weights = self.file
        copy = type(skeleton)()
        copy.CopyFrom(skeleton)
        save_skeleton(copy, weights, path)
