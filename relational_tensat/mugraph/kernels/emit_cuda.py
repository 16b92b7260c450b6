"""CUDA C++ of one kernel: its statements, spelled with the functions of ``fused.cuh``.

NVRTC makes it machine code, which needs neither a GPU nor a driver.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from relational_tensat.base.errors import UsageError
from relational_tensat.base.shown_text import escaped_in_code
from relational_tensat.gpu.catalogue import FLOAT_TYPES, HEADERS, read_source
from relational_tensat.gpu.nvrtc import Compiled, compile_source
from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mugraph import Kernel
from relational_tensat.mugraph.graph.validity import BlockStage
from relational_tensat.mugraph.kernels.cuda_buffers import (
    WARPS,
    BlockSchedule,
    schedule,
    schedule_with_buffers,
    with_partials,
)
from relational_tensat.mugraph.kernels.cuda_statements import (
    BLOCKS,
    ITEM_BYTES,
    Loops,
    Statements,
    registers,
    shared,
    type_of,
)
from relational_tensat.mugraph.kernels.indices import ITERATION, end_name, ends
from relational_tensat.mugraph.kernels.kernel_statements import lower
from relational_tensat.mugraph.kernels.layout_choice import (
    STATIC_BYTES,
    KernelLayouts,
    kernel_layouts,
)
from relational_tensat.mugraph.kernels.statements import MAXIMA, Load, Program, Text, identifier
from relational_tensat.tensor.spellings import definitions

#: The maximum of nothing.
_NONE = {MAXIMA["max"]: "Largest::none()", MAXIMA["reduce_max"]: "LargestOfAll::none()"}


@dataclass(frozen=True, slots=True)
class CudaKernel:
    """One kernel as CUDA C++.

    Attributes:
        name: of its entry, with C linkage; parameters are addresses: of the operands, then of the results.
        source: includes ``fused.cuh``.
        grid: blocks along x, y and z; each has ``threads`` along x.
        dynamic_bytes: of shared memory that the launch must state; 0 where the source declares all.
        dtype: of operands and results.
        program, chosen, schedule: the statements; layouts; order, places, barriers.
        least_bytes: of shared memory, had the loop's tiles one buffer each.
    """

    name: str
    source: str
    grid: tuple[int, int, int]
    threads: int
    dynamic_bytes: int
    dtype: str
    program: Program
    chosen: KernelLayouts
    schedule: BlockSchedule
    least_bytes: int


def emit_cuda(
    kernel: Kernel,
    device: Mapping[str, Dims],
    dtype: str = "float16",
    wide: Collection[str] = (),
    chosen: KernelLayouts | None = None,
) -> CudaKernel:
    """Return a kernel as CUDA C++.

    Args:
        kernel: the kernel.
        device: the dims of its operands.
        dtype: of operands and results; sums are float32.
        wide: the operands that are float32, too.
        chosen: its layouts; by default the best for operands and results as they are.

    Raises:
        UsageError: no kernels are made for that element type.
        InputError: the kernel is not well-formed.
    """
    if dtype not in ITEM_BYTES:
        raise UsageError(f"no kernels for elements {dtype!r}, expected {', '.join(ITEM_BYTES)}")
    wide = wide if dtype != "float32" else ()
    chosen = chosen or kernel_layouts(kernel, device, dtype, wide)
    program = with_partials(lower(chosen.kernel, device, wide=wide))
    return _CudaEmission(program, chosen, dtype, wide).kernel()


class _CudaEmission:
    def __init__(
        self, program: Program, chosen: KernelLayouts, dtype: str, wide: Collection[str]
    ) -> None:
        self._program, self._chosen = program, chosen
        self._dtype, self._wide = dtype, frozenset(wide)
        item_bytes = ITEM_BYTES[dtype]
        self._sizes = {
            name: layout.elements * (4 if program.stored[name].is_wide else item_bytes)
            for name, layout in chosen.shared.items()
        }
        self._text, self._copies = Text(), False
        self._loops = Loops(self._text)
        self._statements = Statements(program, chosen, self._wide, item_bytes, self._text)
        loads = [s for s in program.statements[BlockStage.LOOP] if isinstance(s, Load)]
        ahead = [load.output for load in loads if self._statements.copied(load)[1]]
        self._schedule = schedule_with_buffers(program, self._sizes, ahead, chosen.most_bytes)

    def kernel(self) -> CudaKernel:
        program, plan, text = self._program, self._schedule, self._text
        name = identifier(program.kernel.name)
        conditions = {it.tensor for it in program.block.iterators if it.is_condition}
        parameters = [
            f"const {type_of(n in self._wide, n in conditions)}* __restrict__ in_{identifier(n)}"
            for n in program.kernel.operands
        ]
        parameters += [
            f"{type_of(saver.is_wide)}* __restrict__ out_{identifier(saver.output)}"
            for saver in program.block.savers
        ]
        is_static = plan.shared_bytes <= STATIC_BYTES
        extents = " x ".join(map(str, program.block.grid)) or "1"
        text.line(
            f"// {escaped_in_code(program.kernel.name)}: grid {extents}, "
            f"loop {program.block.loop}; {plan.shared_bytes} bytes of shared memory",
            f"#define WARPS {WARPS}", '#include "fused.cuh"', "",
            f"typedef {FLOAT_TYPES[self._dtype]} T;", "",
            f'extern "C" __global__ void __launch_bounds__({32 * WARPS})',
        )  # fmt: skip
        with text.block(f"{name}({', '.join(parameters)}) {{"):
            size = f"[{max(plan.shared_bytes, 1)}]" if is_static else "[]"
            text.line(f"alignas(16) {'' if is_static else 'extern '}__shared__ u8 arena{size};")
            self._ends(in_loop=False)
            self._declare()
            self._run(BlockStage.INVARIANT)
            if plan.ahead:
                self._begin_loads()
            if plan.steps[BlockStage.LOOP]:
                head = f"for (int {ITERATION} = 0; {ITERATION} < {program.block.loop}; ++{ITERATION}) {{"
                with text.block(head):
                    self._ends(in_loop=True)
                    if plan.ahead:
                        self._load_ahead()
                    self._run(BlockStage.LOOP)
            self._run(BlockStage.AFTER)
        grid = (*program.block.grid, 1, 1, 1)
        dynamic = 0 if is_static else plan.shared_bytes
        return CudaKernel(
            name, str(text), (grid[0], grid[1], grid[2]), 32 * WARPS, dynamic, self._dtype, program,
            self._chosen, plan, schedule(program, self._sizes).shared_bytes,
        )  # fmt: skip

    def _declare(self) -> None:
        """Declare what is stored; give what the loop adds to its initial values."""
        for name in self._schedule.places:
            if name not in self._schedule.ahead:
                self._declare_tile(name)
        for name, stored in self._program.stored.items():
            if stored.frame is not None:
                batch, rows, columns = stored.frame.sizes
                self._text.line(f"Sums<{rows}, {columns}> {registers(name)}[{batch}];")
        for name, stored in self._program.stored.items():
            if stored.initial is None:
                continue
            if stored.frame is not None:
                self._statements.clear(name, stored.frame)
            else:
                value = _NONE.get(stored.initial, f"{stored.initial}f")
                with self._loops.elements(stored.dims) as at:
                    self._text.line(f"{self._statements.cell(name, at)} = {value};")

    def _declare_tile(self, name: str) -> None:
        """Declare where a tile lies; one that is loaded ahead, in the buffer of an iteration."""
        kind, place = type_of(self._program.stored[name].is_wide), self._schedule.places[name]
        at = f"arena + {place.offset_bytes}"
        if name in self._schedule.ahead:
            buffers = self._schedule.buffers
            at += f" + {ITERATION} % {buffers} * {place.size_bytes // buffers}"
        self._text.line(f"{kind}* const {shared(name)} = ({kind}*)({at});")

    def _begin_loads(self) -> None:
        """Write a function that begins an iteration's loads, and begin those of the first iterations."""
        with self._text.block(f"const auto load = [&](int {ITERATION}) {{", "};"):
            self._ends(in_loop=True)
            for step in self._schedule.steps[BlockStage.LOOP]:
                if step.statement.output in self._schedule.ahead:
                    self._declare_tile(step.statement.output)
                    self._statements.write(step.statement)
            self._text.line("end_group();")
        self._text.line(f"for (int i = 0; i < {self._schedule.buffers - 1}; ++i) load(i);")

    def _load_ahead(self) -> None:
        """Wait for an iteration's tiles, and begin to load those of one that comes later.

        Groups are counted: at the end there are empty ones. The first one has what was copied before
        the loop.
        """
        buffers, text = self._schedule.buffers, self._text
        text.line(f"wait_for_groups<{buffers - 2}>();", "__syncthreads();")
        later = f"{ITERATION} + {buffers - 1}"
        text.line(f"if ({later} < {self._program.block.loop}) load({later});", "else end_group();")
        for name in sorted(self._schedule.ahead):
            self._declare_tile(name)
        self._copies = False

    def _ends(self, in_loop: bool) -> None:
        """Declare how many values there are, from a tile on, of variables whose last tile is smaller."""
        program = self._program
        for name, rest in ends(program.partial, program.block, BLOCKS, in_loop).items():
            self._text.line(f"const int {end_name(name)} = {rest};")

    def _run(self, stage: BlockStage) -> None:
        for step in self._schedule.steps[stage]:
            if stage is BlockStage.LOOP and step.statement.output in self._schedule.ahead:
                continue
            if step.waits:
                self._wait()
            self._statements.write(step.statement)
            statement = step.statement
            self._copies |= (
                isinstance(statement, Load) and self._statements.copied(statement)[1] > 0
            )

    def _wait(self) -> None:
        """Have threads wait for each other, and before that for what each copies."""
        if self._copies:
            self._text.line("wait_for_copies();")
            self._copies = False
        self._text.line("__syncthreads();")


#: Kernels are made and tested for these: Ampere, Hopper, Blackwell.
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")

#: The functions of ``tensor.spellings`` that kernels call, in the order of the sources that bench keeps;
#: common.cuh has sigmoid.
_CALLED = ("relu", "nan_to_zero", "div_or_zero", "square", "silu", "gelu")

_FUSED = Path(__file__).resolve().parent / "fused.cuh"


def read_fused() -> str:
    """Return the text of ``fused.cuh``, and the functions that its kernels call behind it."""
    functions = definitions("DEVICE float", _CALLED, exp="expf", erf="erff")
    return _FUSED.read_text(encoding="utf-8") + functions


def headers() -> dict[str, str]:
    """Return what an emitted source includes, by name."""
    return {**{name: read_source(name) for name in HEADERS}, _FUSED.name: read_fused()}


def compile_cuda(kernel: CudaKernel, arch: str) -> Compiled:
    """Compile a kernel.

    Args:
        kernel: the kernel to compile.
        arch: for example ``sm_90``.

    Raises:
        MissingDependencyError: NVRTC is not installed.
        InputError: it does not compile.
    """
    return compile_source(f"{kernel.name}.cu", kernel.source, headers(), (), arch)
