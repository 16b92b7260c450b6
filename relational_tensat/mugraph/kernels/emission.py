"""The kernels of a μGraph in a target's language, and what there is to know of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from relational_tensat.base.errors import InputError, UsageError, unknown
from relational_tensat.mugraph.graph.dims import text_of, variables
from relational_tensat.mugraph.graph.expanded import expanded
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph, Operation
from relational_tensat.mugraph.graph.mugraph_text import step_text
from relational_tensat.mugraph.graph.well_formed import Stage, kernel_tensors
from relational_tensat.mugraph.kernels.c.emit_c import emit_c
from relational_tensat.mugraph.kernels.cuda.compile_cuda import compile_cuda
from relational_tensat.mugraph.kernels.cuda.emit_cuda import CudaKernel, emit_cuda
from relational_tensat.mugraph.kernels.layouts.choosing_layouts import (
    GraphLayouts,
    KernelLayouts,
    chosen_layouts,
    key_of,
)
from relational_tensat.mugraph.kernels.lowering.layouts import row_major
from relational_tensat.mugraph.kernels.triton.emit_triton import emit_triton
from relational_tensat.mugraph.kernels.triton.machine_code import compile_triton

#: The languages, the recommended one first.
TARGETS = ("triton", "cuda", "c")
#: What a file of each is called.
SUFFIXES: Mapping[str, str] = {"triton": ".py", "cuda": ".cu", "c": ".c"}


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One statement of a block.

    Attributes:
        place: its position in all stages.
        stage: ``before``, ``loop`` or ``after``.
        waits: whether threads wait for each other before it.
        over: the index variables that threads go over, the last the fastest, where that was to choose.
    """

    place: int
    stage: str
    waits: bool
    statement: str
    writes: tuple[str, ...]
    reads: tuple[str, ...]
    over: str

    def content(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """Where a block's tensor lies.

    Attributes:
        memory: ``registers``, ``shared`` or ``device``.
        offset, size: in bytes, in shared memory; else None.
        needed: the positions of the first and the last statement that need it.
        strides: by index variable, in elements; and whether chunks of rows change places.
    """

    tensor: str
    memory: str
    dims: str
    element: str
    offset: int | None
    size: int | None
    needed: str
    strides: str

    def content(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class MachineCode:
    """What a compiler says of a kernel; shared memory is per block, registers are per thread."""

    registers: int
    shared_bytes: int
    spilled_bytes: int


@dataclass(frozen=True, slots=True)
class Emitted:
    """A kernel as code.

    Attributes:
        plan, places: of CUDA; Triton and C compilers decide these themselves.
        compiled: compiles it for an architecture, for example ``sm_90``.
        layouts: of the whole μGraph; Triton and C take from it how what is between kernels lies.
    """

    name: str
    target: str
    source: str
    grid: tuple[int, ...]
    shared_bytes: int
    plan: tuple[PlanRow, ...]
    places: tuple[PlaceRow, ...]
    compiled: Callable[[str], MachineCode]
    layouts: GraphLayouts


def emit(graph: MuGraph, target: str, dtype: str | None = None) -> list[Emitted]:
    """Return the graph-defined kernels of a μGraph as code, in order.

    Args:
        graph: the μGraph.
        target: one of ``TARGETS``.
        dtype: of elements; float16 by default, in C float32, which it has only.

    Raises:
        UsageError: the target, or its element type, is none.
        InputError: there are no kernels in the graph, or the target cannot say one of them.
    """
    if target not in TARGETS:
        raise unknown("target", target, TARGETS)
    if target == "c" and dtype not in (None, "float32"):
        raise UsageError(f"kernels in C have elements of float32, not {dtype}")
    if not graph.kernels:
        raise InputError(f"{graph.name}: a program of library operators, it has no kernels")
    dtype = dtype or ("float32" if target == "c" else "float16")
    graph = expanded(graph)
    layouts = chosen_layouts(graph, dtype)
    return [
        _emitted(_Input(graph, kernel, dtype, layouts, own), target)
        for kernel, own in zip(graph.kernels, layouts.kernels, strict=True)
    ]


def order_of_steps(graph: MuGraph) -> list[str]:
    """Return a line for each step of a kernel graph, in order; none where all of them are kernels.

    What is a library's (cuBLAS, torch, NumPy) has no code here: the lines say where it is called.
    """
    if len(graph.kernels) == len(graph.steps):
        return []
    dims = kernel_tensors(graph)
    return [
        f"library: {step_text(step, dims)}"
        if isinstance(step, Operation)
        else f"kernel {step.name}"
        for step in graph.steps
    ]


@dataclass(frozen=True, slots=True)
class _Input:
    """A kernel of a graph, to be emitted."""

    graph: MuGraph
    kernel: Kernel
    dtype: str
    layouts: GraphLayouts
    own: KernelLayouts


def _emitted(given: _Input, target: str) -> Emitted:
    device, kernel, wide = kernel_tensors(given.graph), given.kernel, given.graph.wide
    operands = {name: device[name] for name in kernel.operands}
    grid, layouts, lying = kernel.block.grid, given.layouts, given.own.device
    if target == "c":
        c = emit_c(kernel, operands, lying)
        return Emitted(c.name, target, c.source, grid, 0, (), (), _not_compiled, layouts)
    if target == "triton":
        triton = emit_triton(kernel, operands, given.dtype, wide, lying)

        def compiled(arch: str) -> MachineCode:
            code = compile_triton(triton, arch)
            return MachineCode(code.registers, code.shared_bytes, code.spilled_bytes)

        return Emitted(triton.name, target, triton.source, grid, 0, (), (), compiled, layouts)
    cuda = emit_cuda(kernel, operands, given.dtype, wide, given.own)

    def compiled_cuda(arch: str) -> MachineCode:
        code = compile_cuda(cuda, arch)
        return MachineCode(code.most_registers, cuda.schedule.shared_bytes, code.spilled_bytes)

    return Emitted(
        cuda.name, target, cuda.source, grid, cuda.schedule.shared_bytes, _plan(cuda),
        _places(cuda, wide), compiled_cuda, layouts,
    )  # fmt: skip


def _not_compiled(arch: str) -> MachineCode:
    raise UsageError(f"C is not compiled for {arch}")


def _plan(kernel: CudaKernel) -> tuple[PlanRow, ...]:
    rows: list[PlanRow] = []
    program = kernel.program
    for stage in (Stage.INVARIANT, Stage.LOOP, Stage.AFTER):
        for step in kernel.schedule.steps[stage]:
            output = step.statement.output
            others = sorted(program.writes(step.statement) - {output})
            rows.append(
                PlanRow(
                    len(rows), stage.value, step.waits, type(step.statement).__name__.lower(),
                    (output, *others), tuple(sorted(program.reads(step.statement))),
                    " ".join(variables(kernel.chosen.orders.get(key_of(step.statement), ()))),
                )
            )  # fmt: skip
    return tuple(rows)


def _places(kernel: CudaKernel, wide: Collection[str]) -> tuple[PlaceRow, ...]:
    rows = []
    conditions = {it.tensor for it in kernel.program.block.iterators if it.is_condition}
    for name, dims in kernel.chosen.device.items():
        element = "float32" if name in wide else kernel.dtype
        element = "bool" if name in conditions else element
        strides = str(row_major(dims))
        rows.append(PlaceRow(name, "device", text_of(dims), element, None, None, "", strides))
    for name, stored in kernel.program.stored.items():
        element = "float32" if stored.is_wide else kernel.dtype
        dims_text = text_of(stored.dims)
        if stored.frame is not None:
            rows.append(PlaceRow(name, "registers", dims_text, element, None, None, "", ""))
            continue
        place, layout = kernel.schedule.places[name], kernel.chosen.shared[name]
        rows.append(
            PlaceRow(
                name, "shared", dims_text, element, place.offset_bytes, place.size_bytes,
                f"{place.first}–{place.last}", str(layout),
            )
        )  # fmt: skip
    return tuple(rows)
