"""What became of the file: how large the written one is beside the original, and in which versions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relational_tensat.formats.onnx_frame import FileFigures


@dataclass(frozen=True, slots=True)
class FileChange:
    """The figures of the original's file and of the one that is written, both ONNX."""

    before: FileFigures
    after: FileFigures

    @property
    def growth(self) -> str:
        """Return what there is more of, "" where there is nothing."""
        before, after = self.before, self.after
        more = []
        if after.nodes > before.nodes:
            more.append(f"{after.nodes:,} nodes, it had {before.nodes:,}")
        if after.bytes > before.bytes:
            more.append(f"{after.bytes:,} bytes, it had {before.bytes:,}")
        return " and ".join(more)

    @property
    def versions(self) -> str:
        """Return the note on versions that were raised, "" where none was."""
        before, after = self.before, self.after
        raised = []
        if after.opset > before.opset:
            raised.append(f"operator set {before.opset} to {after.opset}")
        if after.ir_version > before.ir_version:
            raised.append(f"file format {before.ir_version} to {after.ir_version}")
        return f"versions raised, as what is new needs them: {', '.join(raised)}" if raised else ""

    @property
    def fixed_inputs(self) -> str:
        """Return the note on inputs that are none any more, as their values count as constants; or ""."""
        after = self.after.default_inputs
        fixed = [name for name in self.before.default_inputs if name not in after]
        some = ", ".join(fixed[:3]) + (f" and {len(fixed) - 3} more" if len(fixed) > 3 else "")
        return (
            f"inputs with a value of their own are constants in the written file: {some}"
            if some
            else ""
        )

    def to_json(self) -> dict[str, Any]:
        """Return both figures."""
        return {
            name: {"nodes": figures.nodes, **asdict(figures)}
            for name, figures in (("before", self.before), ("after", self.after))
        }
