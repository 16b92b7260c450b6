"""One kernel without products as a function of C, which the system's compiler makes code of."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from relational_tensat.base.errors import InputError, MissingDependencyError, first_line
from relational_tensat.base.shown_text import escaped_in_code
from relational_tensat.mugraph.graph.dims import Dims, count
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernels.c_emission import CEmission
from relational_tensat.mugraph.kernels.c_loops import SizedLoops, looped
from relational_tensat.mugraph.kernels.c_program import for_processor
from relational_tensat.mugraph.kernels.c_tensors import C_TYPES, scale_of, zero_of
from relational_tensat.mugraph.kernels.c_tiles import (
    MOST_ELEMENTS,
    CpuTiles,
    as_one_block,
    tiles_of,
)
from relational_tensat.mugraph.kernels.kernel_statements import lower
from relational_tensat.mugraph.kernels.statements import (
    Load,
    Multiply,
    Program,
    Save,
    Text,
    identifier,
)
from relational_tensat.tensor.spellings import SPELLINGS, definitions


@dataclass(frozen=True, slots=True)
class CKernel:
    """One kernel as C.

    Attributes:
        name: of the function, ``kernel_`` and the kernel's; parameters are pointers to float: the operands,
            then scale and zero point of each that is of integers, then the results; then, of one that is
            parted, which part to compute, of how many.
        source: all of it.
        parameters: their names.
        kinds: of these, the element types of those that are pointers to others than float.
        most_parts: in how many the work is worth to be parted; 1 where the function computes all of it.
        turn_ns: the time of one turn of loops around it; 0 without loops. With them, parameters are parted
            always, and the last one is the sizes of the loops.
    """

    name: str
    source: str
    parameters: tuple[str, ...]
    kinds: Mapping[str, str] = field(default_factory=dict)
    most_parts: int = 1
    turn_ns: int = 0


#: Less work is not worth another thread: a part takes so many microseconds at least.
LEAST_PART_US = 5.0
#: Bytes read and written, and functions as exponentials: a pass within caches, and a vector of them.
_BYTES_PER_US, _COSTLY_PER_US = 80_000, 4_000


def emit_c(
    kernel: Kernel,
    device: Mapping[str, Dims],
    lying: Mapping[str, Dims] | None = None,
    *,
    may_be_parted: bool = False,
    loops: SizedLoops | None = None,
    quantized: Mapping[str, str] | None = None,
) -> CKernel:
    """Return a kernel as C, which computes in float32.

    Args:
        kernel: the kernel.
        device: the dims of its operands.
        lying: dims of operands and results in their order in memory, where that is another.
        may_be_parted: whether the function computes a part of the results, where there is work for several.
        loops: around it, of sizes that are arguments.
        quantized: element types of operands and results that are integers in memory: they stand for
            numbers, by a scale and a zero point each.

    Raises:
        InputError: the kernel is not well-formed, or has products: those are left to libraries, which
            are faster than what a compiler makes of loops.
    """
    results = {saver.output: saver.dims for saver in kernel.block.savers}
    lying = {**device, **results, **(lying or {})}
    alone = as_one_block(kernel, device)
    program = lower(alone or kernel, device, keeps_repeated=True)
    for statement in (each for own in program.statements.values() for each in own):
        if isinstance(statement, Multiply):
            raise InputError(
                f"{kernel.name}: {statement.output} is a product, which no C is made of"
            )
    name = identifier(f"kernel_{kernel.name}")  # as no function of the headers is called
    grid = " x ".join(map(str, kernel.block.grid)) or "1"
    conditions = {it.tensor for it in kernel.block.iterators if it.is_condition}
    if loops is not None and quantized:
        raise InputError(f"{kernel.name}: elements are integers in loops of any size")
    integers = {n: (quantized or {})[n] for n in scaled(quantized or {}, kernel)}
    operands = {n: f"in_{identifier(n)}" for n in kernel.operands}
    outputs = {n: f"out_{identifier(n)}" for n in kernel.outputs}
    kind_of = {**dict.fromkeys(conditions, "bool"), **integers}
    kinds = {own: kind_of[n] for n, own in (*operands.items(), *outputs.items()) if n in kind_of}
    scales = [own for n in integers for own in (f"given_{scale_of(n)}", f"given_{zero_of(n)}")]
    kinds |= {f"given_{zero_of(n)}": kind for n, kind in integers.items()}
    given = [*operands.values(), *scales]
    pointers = {n: f"const {C_TYPES[kinds.get(n, 'float32')]} *restrict {n}" for n in given}
    pointers |= {n: f"{C_TYPES[kinds.get(n, 'float32')]} *restrict {n}" for n in outputs.values()}
    declared = [*pointers.values()]
    work_us = _work_us(program)
    most_parts = max(1, int(work_us / LEAST_PART_US)) if may_be_parted and not loops else 1
    parts, body = _body(program, lying, integers, alone is not None, most_parts)
    known = [line for n in integers for line in _known(n)]
    if loops is not None:
        tensors = dict(zip([*kernel.operands, *kernel.outputs], pointers.values(), strict=True))
        declared, body = looped(loops, tensors, lying, body)
    if parts > 1:
        declared += ["long part", "long parts"]
    text = Text()
    text.line(f"// {escaped_in_code(kernel.name)}: grid {grid}, loop {kernel.block.loop}")
    inner = f"{name}_in_clones"  # which are seen from everywhere, unless they are static
    with text.block(f"static CLONES void {inner}({', '.join(declared)}) {{"):
        text.line(*known, *body.splitlines())
    given = [each.split()[-1].lstrip("*") for each in declared]
    with text.block(f"void {name}({', '.join(declared)}) {{"):
        text.line(f"{inner}({', '.join(given)});")
    source, turn_ns = f"{read_functions()}\n{text}", max(1, round(1e3 * work_us)) if loops else 0
    return CKernel(name, source, tuple(pointers), kinds, parts, turn_ns)


def scaled(quantized: Collection[str], kernel: Kernel) -> list[str]:
    """Return the tensors of a kernel that are of integers, in the order of their scales."""
    return [name for name in (*kernel.operands, *kernel.outputs) if name in quantized]


def _known(name: str) -> list[str]:
    """Return the lines that read the scale and the zero point of a tensor."""
    return [
        f"const float {scale_of(name)} = *given_{scale_of(name)};",
        f"const int {zero_of(name)} = *given_{zero_of(name)};",
    ]


def _work_us(program: Program) -> float:
    """Return what a kernel takes at least: its work is parted by that."""
    every = [each for stage in program.statements.values() for each in stage]
    moved = [each.output for each in every if isinstance(each, Load)]
    moved += [each.saver.tile for each in every if isinstance(each, Save)]
    functions = {name for name, spelling in SPELLINGS.items() if spelling.is_costly}
    costly = [n for n, f in program.formulas.items() if f.op in functions and n in program.dims]
    work_us = sum(4 * count(program.dims[name]) for name in moved) / _BYTES_PER_US
    return work_us + sum(count(program.dims[name]) for name in costly) / _COSTLY_PER_US


def _body(
    program: Program,
    lying: Mapping[str, Dims],
    quantized: Mapping[str, str],
    has_tiles: bool,
    most_parts: int,
) -> tuple[int, str]:
    """Return the parts, and the lines within a function, with the largest tiles that a stack has room for.

    Raises:
        InputError: it has room for none.
    """

    def written(program: Program, tiles: CpuTiles | None) -> tuple[int, str]:
        parts = min(most_parts, CEmission(program, lying, tiles, quantized).pieces)
        return parts, CEmission(program, lying, tiles, quantized, is_parted=parts > 1).body()

    if not has_tiles:
        return written(program, None)
    *larger, smallest = MOST_ELEMENTS
    for most in larger:
        tiles = tiles_of(program, lying, most)
        with suppress(InputError):
            return written(for_processor(program, tiles), tiles)
    tiles = tiles_of(program, lying, smallest)
    return written(for_processor(program, tiles), tiles)


def read_functions() -> str:
    """Return the text of ``functions.h``, and the functions of ``tensor.spellings`` that call its own."""
    own = (Path(__file__).resolve().parent / "functions.h").read_text(encoding="utf-8")
    called = [name for name, each in SPELLINGS.items() if each.body]
    return own + definitions("static inline float", called, exp="exp_of", erf="erf_of")


#: Sums are those of ``omp simd``, in any order; nothing else changes what C says.
FLAGS = (
    "-std=c11", "-O3", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math",
    "-Werror=implicit-function-declaration", "-shared", "-fPIC",
)  # fmt: skip


class CFunction:
    """A compiled kernel, a function of its operands and results: contiguous arrays of float32, or bools."""

    def __init__(self, kernel: CKernel, function: Callable[..., None]) -> None:
        """Take a kernel, and its entry in a library that is loaded."""
        self._kernel, self._function = kernel, function

    def __call__(self, operands: Sequence[NDArray[Any]], results: Sequence[NDArray[Any]]) -> None:
        """Compute the results.

        Raises:
            InputError: an array is of another kind.
        """
        self.bound(operands, results)()

    def bound(
        self, operands: Sequence[NDArray[Any]], results: Sequence[NDArray[Any]]
    ) -> Callable[[], None]:
        """Return what computes the results, of these arrays, which it keeps.

        Raises:
            InputError: an array is of another kind.
        """
        arrays, function = [*operands, *results], self._function
        for name, array in zip(self._kernel.parameters, arrays, strict=True):
            kind = self._kernel.kinds.get(name, "float32")
            if array.dtype != kind or not array.flags.c_contiguous:
                raise InputError(f"{self._kernel.name}: {name} is no contiguous array of {kind}")
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]

        def run(kept: Sequence[NDArray[Any]] = arrays) -> None:
            function(*pointers)

        return run


def compiler() -> str:
    """Return the path of the system's C compiler.

    Raises:
        MissingDependencyError: no compiler is installed.
    """
    if named := os.environ.get("CC"):
        if shutil.which(named) is None:
            raise MissingDependencyError(
                f"kernels in C need a C compiler: CC is {named!r}, which does not exist"
            )
        return named
    found = shutil.which("cc") or shutil.which("gcc")
    if found is None:
        raise MissingDependencyError("kernels in C need a C compiler: set CC, or install cc")
    return found


@cache
def compiler_version(path: str) -> str:
    """Return what a compiler calls itself, and what it compiles for: the lines of ``--version``."""
    told = subprocess.run([path, "--version"], capture_output=True, text=True)
    return " ".join([path, *told.stdout.split()])


def emitted_kernels(graph: MuGraph) -> dict[str, CKernel]:
    """Return the kernels of a μGraph as C, by their names.

    Raises:
        InputError: C cannot say one.
    """
    device = kernel_tensors(graph)
    return {
        kernel.name: emit_c(kernel, {name: device[name] for name in kernel.operands})
        for kernel in graph.kernels
    }


def compiled_kernels(graph: MuGraph, folder: Path) -> dict[str, CFunction]:
    """Return the kernels of a μGraph as functions, by their names.

    Raises:
        MissingDependencyError: there is no C compiler.
        InputError: C cannot say one, or it does not compile.
    """
    return {name: compile_c(kernel, folder) for name, kernel in emitted_kernels(graph).items()}


def compile_c(kernel: CKernel, folder: Path) -> CFunction:
    """Return a kernel as a function.

    Args:
        kernel: the kernel to compile.
        folder: where the source and the library are written.

    Raises:
        MissingDependencyError: there is no C compiler.
        InputError: it does not compile, or is not loaded.
    """
    source, library = folder / f"{kernel.name}.c", folder / f"{kernel.name}.so"
    source.write_text(kernel.source, encoding="utf-8")
    command = [compiler(), *FLAGS, str(source), "-o", str(library), "-lm"]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        lines = made.stderr.splitlines() or ["the compiler says nothing"]
        reason = next((line for line in lines if "error" in line), lines[0])
        raise InputError(f"{kernel.name}.c: does not compile: {reason}")
    try:
        function = getattr(ctypes.CDLL(str(library)), kernel.name)
    except OSError as error:
        raise InputError(f"{kernel.name}.c: is not loaded: {first_line(error)}") from error
    function.restype = None
    return CFunction(kernel, function)
