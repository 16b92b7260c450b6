"""A report on onnxruntime's kernels: how fast the file is with their library, and without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relational_tensat.cost.race import Standing
from relational_tensat.run.reports import FusionReport, span

if TYPE_CHECKING:
    from relational_tensat.custom_ops.library import KernelOp
    from relational_tensat.custom_ops.parts import PartRow
    from relational_tensat.mugraph.fusion.own_kernel import OwnKernel
    from relational_tensat.mugraph.graph.mugraph import MuGraph


@dataclass(frozen=True, slots=True)
class RunningKernel:
    """A kernel of the result that was timed in onnxruntime.

    Attributes:
        name: of its op and local function.
        operators: of its program.
        places: how many calls the file has.
        kernel_us, plain_us: of one call with the kernel, and without; a session's own time is in both.
        code: its C, without the functions that all kernels call.
    """

    name: str
    operators: tuple[str, ...]
    places: int
    kernel_us: float
    plain_us: float
    code: str


@dataclass(frozen=True, slots=True, eq=False)
class LibraryReport:
    """How a file with kernels is beside the file that would be written otherwise.

    Attributes:
        kernels: those of the file.
        with_library, without: how many times as fast as that file it is; without its library it was not
            timed where it is no faster with it.
        noise: that file's standing against itself.
        is_taken: whether it is written.
        parts: the outcome of each part of the model.
        replaced: operators of onnxruntime that kernels stand for.
        folder: where the manifest and the C are, once they are written.
        timed_before: UTC, ISO 8601, when an earlier run timed it; "" where this one did.
    """

    kernels: tuple[RunningKernel, ...]
    with_library: Standing
    without: Standing | None
    noise: Standing
    is_taken: bool
    parts: tuple[PartRow, ...]
    replaced: tuple[str, ...] = ()
    folder: Path | None = None
    timed_before: str = ""

    @property
    def outcome(self) -> str:
        """The outcome, in one line."""
        found = f"{span(self.with_library)} as fast as the file without kernels"
        if self.without is not None:
            found += f", without their library {span(self.without)}"
        if self.timed_before:
            found += f"; timed on {self.timed_before}, --set race-again=yes times them again"
        if not self.is_taken:
            against = f", against itself {span(self.noise)}"
            tried = f"measured with {len(self.kernels)} of them"
            return f"no kernels in the file: {tried}, {found}{against}"
        where = "" if self.folder is None else f", in {self.folder}"
        replaced = f", for {', '.join(self.replaced)} of onnxruntime, too" if self.replaced else ""
        return f"{len(self.kernels)} kernels{replaced}{where}: measured, {found}"

    def to_json(self) -> Mapping[str, Any]:
        """Return the attributes as an object."""
        return {
            "kernels": [  # the C is in files
                {name: value for name, value in asdict(kernel).items() if name != "code"}
                for kernel in self.kernels
            ],
            "with_library": asdict(self.with_library),
            "without": None if self.without is None else asdict(self.without),
            "noise": asdict(self.noise),
            "is_taken": self.is_taken,
            "parts": [asdict(part) for part in self.parts],
            "replaced": list(self.replaced),
            "folder": None if self.folder is None else str(self.folder),
            "timed_before": self.timed_before,
        }


@dataclass(frozen=True, slots=True, eq=False)
class KernelForm:
    """A result with kernels, to be written.

    Attributes:
        ops: the custom ops of its file.
        kernels: the parts that they are made of.
        fusion: as of other kernels of the model's own.
        overrides: kernels by the operators of onnxruntime that they replace.
        libraries: with which it runs here.
    """

    report: LibraryReport
    ops: tuple[KernelOp, ...]
    kernels: tuple[OwnKernel, ...]
    fusion: FusionReport
    overrides: Mapping[str, MuGraph] = field(default_factory=dict)
    libraries: tuple[Path, ...] = ()

    @property
    def is_taken(self) -> bool:
        """Whether it is written."""
        return self.report.is_taken

    def left_out(self) -> KernelForm:
        """Return the outcome where another runtime is faster yet: the file is written without them."""
        return KernelForm(replace(self.report, is_taken=False), (), (), self.fusion)
