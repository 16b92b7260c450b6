"""The kernels of a μGraph in a target's language, and what there is to know of each.

Triton is loaded as a function, or compiled to machine code, which needs neither a GPU nor a driver.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import subprocess
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from relational_tensat.base.errors import (
    InputError,
    MissingDependencyError,
    UsageError,
    first_line,
    unknown,
)
from relational_tensat.base.folders import temporary_folder
from relational_tensat.mugraph.graph.dims import text_of, variables
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph, Operation
from relational_tensat.mugraph.graph.mugraph_text import step_text
from relational_tensat.mugraph.graph.rewrites import expanded
from relational_tensat.mugraph.graph.validity import BlockStage, kernel_tensors
from relational_tensat.mugraph.kernels.emit_c import emit_c
from relational_tensat.mugraph.kernels.emit_cuda import CudaKernel, compile_cuda, emit_cuda
from relational_tensat.mugraph.kernels.emit_triton import TritonKernel, emit_triton
from relational_tensat.mugraph.kernels.layout_choice import (
    GraphLayouts,
    KernelLayouts,
    chosen_layouts,
    key_of,
)
from relational_tensat.mugraph.kernels.layouts import row_major

_POINTERS = {"float32": "*fp32", "float16": "*fp16", "bfloat16": "*bf16", "bool": "*u8"}
#: Of shared memory that a block may have, by the first digits of an architecture's number.
_SHARED_BYTES = {8: 163 << 10, 9: 227 << 10, 10: 227 << 10}
_USED = re.compile(r"Used (\d+) registers")
_SPILLED = re.compile(r"(\d+) bytes spill stores")


@dataclass(frozen=True, slots=True)
class TritonCode:
    """Machine code of one kernel.

    Attributes:
        shared_bytes: of shared memory, all of it stated at the launch.
        registers: of a thread.
        spilled_bytes: that did not fit into registers.
        instructions: the instructions of tensor cores and asynchronous copies in it.
    """

    cubin: bytes
    shared_bytes: int
    registers: int
    spilled_bytes: int
    instructions: tuple[str, ...]


def load_triton(kernel: TritonKernel) -> Any:
    """Return a kernel as a function of Triton's, to be called as ``function[grid](*tensors)``.

    With TRITON_INTERPRET=1 in the environment, Triton runs it by its interpreter, without a GPU.

    Raises:
        MissingDependencyError: Triton is not installed.
    """
    _triton()
    with temporary_folder() as folder:
        path = folder / f"{kernel.name}.py"
        path.write_text(kernel.source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(f"triton_{kernel.name}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        function = getattr(module, kernel.name)
        inspect.getsource(getattr(function, "fn", function))  # the file goes: Triton reads it later
    return function


def compile_triton(kernel: TritonKernel, arch: str) -> TritonCode:
    """Compile a kernel.

    Args:
        kernel: the kernel to compile.
        arch: NVIDIA's, for example ``sm_90``.

    Raises:
        MissingDependencyError: Triton is not installed.
        InputError: it does not compile, or needs more shared memory than a block may have.
    """
    _triton()
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = load_triton(kernel)
    places = range(len(kernel.parameters))
    dtypes = {
        **dict.fromkeys(kernel.parameters, kernel.dtype),
        **dict.fromkeys(kernel.wide, "float32"),
        **dict.fromkeys(kernel.conditions, "bool"),
    }
    signature = {name: _POINTERS[dtypes[name]] for name in kernel.parameters}
    aligned = {(place,): [["tt.divisibility", 16]] for place in places}
    source = ASTSource(fn=function, signature=signature, constexprs={}, attrs=aligned)
    try:
        compiled = triton.compile(
            source,
            target=GPUTarget("cuda", _number(arch), 32),
            options={
                "num_warps": kernel.warps,
                "num_stages": 3,
                "enable_fp_fusion": True,
            },
        )
    except Exception as error:  # Triton's passes raise errors of many kinds, MLIR's among them
        raise InputError(
            f"{kernel.name}: Triton does not compile it for {arch}: {first_line(error)}"
        ) from error
    needed, most = compiled.metadata.shared, _SHARED_BYTES.get(_number(arch) // 10)
    if most is not None and needed > most:
        raise InputError(
            f"{kernel.name}: Triton needs {needed:,} bytes of shared memory for a block, "
            f"{arch} has {most:,}"
        )
    ptx = compiled.asm["ptx"]
    log = _ptxas_log(ptx, arch)
    names = re.findall(r"mma\.sync|wgmma\.mma_async|tcgen05\.mma|cp\.async\.c[ag]|ldmatrix", ptx)
    return TritonCode(
        compiled.asm["cubin"],
        compiled.metadata.shared,
        max(map(int, _USED.findall(log)), default=0),
        sum(map(int, _SPILLED.findall(log))),
        tuple(sorted(set(names))),
    )


def _number(arch: str) -> int:
    return int(arch.removeprefix("sm_"))


def _ptxas_log(ptx: str, arch: str) -> str:
    """Return what the assembler that comes with Triton says of a kernel."""
    from triton.backends.nvidia.compiler import get_ptxas

    target = re.search(r"\.target (\w+)", ptx)
    assert target is not None
    with temporary_folder() as folder:
        path = folder / "kernel.ptx"
        path.write_text(ptx, encoding="utf-8")
        command = [
            get_ptxas(_number(arch)).path, "-v", f"-arch={target[1]}",
            str(path), "-o", str(path.with_suffix(".cubin")),
        ]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, check=True).stderr


def _triton() -> Any:
    try:
        import triton
    except ImportError:
        raise MissingDependencyError(
            "kernels in Triton need Triton: pip install 'relational-tensat[triton]'"
        ) from None
    return triton


#: The languages, the recommended one first.
TARGETS = ("triton", "cuda", "c")
#: The name of a file of each.
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


@dataclass(frozen=True, slots=True)
class MachineCode:
    """A compiler's figures of a kernel; shared memory is per block, registers are per thread."""

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
        target: one of ``TARGETS``.
        dtype: of elements; float16 by default, in C float32, which it has only.

    Raises:
        UsageError: the target, or its element type, is not known.
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

    Operators of libraries (cuBLAS, torch, NumPy) have no code here: the lines say where they are called.
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
    for stage in (BlockStage.INVARIANT, BlockStage.LOOP, BlockStage.AFTER):
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
