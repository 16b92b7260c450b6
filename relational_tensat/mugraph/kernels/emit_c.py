"""C of one kernel without products: blocks one after the other, a loop for each statement.

The system's compiler makes it a function.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from relational_tensat.base.errors import InputError, MissingDependencyError
from relational_tensat.base.shown_text import escaped_in_code
from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph
from relational_tensat.mugraph.graph.validity import BlockStage, kernel_tensors
from relational_tensat.mugraph.kernels.indices import (
    ITERATION,
    Formulas,
    element_offset,
    end_name,
    ends,
    inside,
    number,
    offset,
    reduced,
    result_start,
    summand,
    tile_start,
    written_index,
)
from relational_tensat.mugraph.kernels.kernel_statements import lower
from relational_tensat.mugraph.kernels.layouts import row_major
from relational_tensat.mugraph.kernels.statements import (
    MAXIMA,
    Compute,
    Load,
    Multiply,
    Program,
    Reduce,
    Save,
    Statement,
    Text,
    fade_of,
    identifier,
)
from relational_tensat.tensor.spellings import SPELLINGS, definitions

_BLOCKS = ("block_x", "block_y", "block_z")
_STAGES = (BlockStage.INVARIANT, BlockStage.LOOP, BlockStage.AFTER)


@dataclass(frozen=True, slots=True)
class CKernel:
    """One kernel as C.

    Attributes:
        name: of the function; parameters are pointers to float: the operands, then the results.
        source: all of it.
        parameters: their names.
        conditions: of these, those that are pointers to bytes, 1 or 0.
    """

    name: str
    source: str
    parameters: tuple[str, ...]
    conditions: frozenset[str] = frozenset()


def emit_c(
    kernel: Kernel, device: Mapping[str, Dims], lying: Mapping[str, Dims] | None = None
) -> CKernel:
    """Return a kernel as C, of elements of float32.

    Args:
        kernel: the kernel.
        device: the dims of its operands.
        lying: dims of operands and results in their order in memory, where that is another.

    Raises:
        InputError: the kernel is not well-formed, or has products: those are left to libraries, which
            are faster than what a compiler makes of loops.
    """
    results = {saver.output: saver.dims for saver in kernel.block.savers}
    program = lower(kernel, device, keeps_repeated=True)
    return _CEmission(program, {**device, **results, **(lying or {})}).kernel()


def read_functions() -> str:
    """Return the text of ``functions.h``, and the functions of ``tensor.spellings`` that call its own."""
    own = (Path(__file__).resolve().parent / "functions.h").read_text(encoding="utf-8")
    called = [name for name, each in SPELLINGS.items() if each.body]
    return own + definitions("static inline float", called, exp="exp_of", erf="erf_of")


class _CEmission(Formulas):
    names = MappingProxyType({"exp": "exp_of({})", "erf": "erf_of({})", "tanh": "tanh_of({})"})

    def __init__(self, program: Program, lying: Mapping[str, Dims]) -> None:
        super().__init__(program)
        self._text, self._lying = Text(), lying
        self._loaded = {
            statement.output: statement.iterator
            for stage in _STAGES
            for statement in program.statements[stage]
            if isinstance(statement, Load)
        }

    def kernel(self) -> CKernel:
        program, text = self._program, self._text
        name = identifier(program.kernel.name)
        conditions = {it.tensor for it in program.block.iterators if it.is_condition}
        bytes_of = frozenset(f"in_{identifier(n)}" for n in conditions)
        parameters = [f"in_{identifier(n)}" for n in program.kernel.operands]
        results = [f"out_{identifier(n)}" for n in program.kernel.outputs]
        declared = [
            *(f"const {_type_of(n in bytes_of)} *restrict {n}" for n in parameters),
            *(f"float *restrict {n}" for n in results),
        ]
        grid = " x ".join(map(str, program.block.grid)) or "1"
        text.line(
            f"// {escaped_in_code(program.kernel.name)}: grid {grid}, loop {program.block.loop}"
        )
        with text.block(f"void {name}({', '.join(declared)}) {{"), ExitStack() as blocks:
            for axis, extent in zip(_BLOCKS, program.block.grid, strict=False):
                if extent > 1:
                    head = f"for (long {axis} = 0; {axis} < {extent}; ++{axis}) {{"
                    blocks.enter_context(text.block(head))
            self._ends(in_loop=False)
            self._declare()
            self._run(BlockStage.INVARIANT)
            if program.statements[BlockStage.LOOP]:
                head = f"for (long {ITERATION} = 0; {ITERATION} < {program.block.loop}; ++{ITERATION}) {{"
                with text.block(head):
                    self._ends(in_loop=True)
                    self._run(BlockStage.LOOP)
            self._run(BlockStage.AFTER)
        source = f"{read_functions()}\n{text}"
        return CKernel(name, source, (*parameters, *results), bytes_of)

    def _declare(self) -> None:
        """Declare what is stored; give what the loop adds to its initial values."""
        for name, stored in self._program.stored.items():
            if name not in self._loaded:
                elements = row_major(stored.dims).elements
                self._text.line(f"_Alignas(64) float {_variable(name)}[{elements}];")
        for name, stored in self._program.stored.items():
            if stored.initial is not None:
                with self._loops(stored.dims) as at:
                    self._text.line(f"{self.stored(name, at)} = {number(stored.initial)};")

    def _ends(self, in_loop: bool) -> None:
        """Declare how many elements a tile has of the variables whose last tile is smaller."""
        partial = self._program.partial
        for name, rest in ends(partial, self._program.block, _BLOCKS, in_loop).items():
            tile = partial[name].tile
            self._text.line(f"const long {end_name(name)} = fewer({tile}, {rest});")

    def _run(self, stage: BlockStage) -> None:
        for statement in self._program.statements[stage]:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        match statement:
            case Load():
                self._load(statement)
            case Compute():
                self._compute(statement)
            case Reduce():
                self._reduce(statement)
            case Save():
                self._save(statement)
            case Multiply():
                raise InputError(
                    f"{self._program.kernel.name}: {statement.output} is a product, which no C is made of"
                )

    def _load(self, load: Load) -> None:
        """Point to a tile: it is read where it lies."""
        iterator, program = load.iterator, self._program
        tensor, tile = self._lying[iterator.tensor], program.dims[iterator.output]
        start = tile_start(iterator, tensor, tile, program.block, self._blocks())
        pointer = f"in_{identifier(iterator.tensor)} + {start}"
        kind = _type_of(iterator.is_condition)
        self._text.line(f"const {kind} *restrict {_variable(load.output)} = {pointer};")

    def _compute(self, compute: Compute) -> None:
        with self._loops(self._program.dims[compute.operand]) as at:
            value = self.element(compute.operand, at)
            cell = self.stored(compute.output, written_index(self._program, compute, at))
            if compute.rescale:
                value = f"{cell} * {self.stored(fade_of(compute.rescale), at)} + {value}"
            elif compute.adds:
                value = f"{cell} + {value}"
            self._text.line(f"{cell} = {value};")

    def _reduce(self, reduce: Reduce) -> None:
        dims = self._program.dims[reduce.operand]
        kept = tuple(dim for dim in dims if dim.variable not in reduce.over)
        summed = tuple(dim for dim in dims if dim.variable in reduce.over)
        is_max, is_exact = reduce.kind in MAXIMA, reduce.kind == "reduce_max"
        how = "max:x" if is_max else "+:x"
        with self._loops(kept, is_inner=False) as outer:
            self._text.line(f"float x = {number(MAXIMA.get(reduce.kind, 0.0))};")
            if is_exact:  # lanes of a vector lose NaN
                self._text.line("int has_nan = 0;")
                how += ") reduction(|:has_nan"
            with self._loops(summed, how) as inner:
                value = self.element(reduce.operand, {**outer, **inner})
                if is_exact:
                    self._text.line(f"const float y = {value};", "has_nan |= y != y;")
                    value = "y"
                added = f"x = larger(x, {value});" if is_max else f"x += {summand(reduce, value)};"
                self._text.line(added)
            if is_exact:
                self._text.line("x = has_nan ? NAN : x;")
            self._text.line(*reduced(reduce, lambda name: self.stored(name, outer)))

    def _save(self, save: Save) -> None:
        saver, program = save.saver, self._program
        tile = program.dims[saver.tile]
        result = self._lying[saver.output]
        start = result_start(saver, result, tile, program.block, self._blocks())
        pointer = f"to_{identifier(saver.output)}"
        self._text.line(f"float *restrict {pointer} = out_{identifier(saver.output)} + {start};")
        with self._loops(tile) as at:
            self._text.line(f"{pointer}[{offset(at, result)}] = {self.element(saver.tile, at)};")

    def stored(self, name: str, at: Mapping[str, str]) -> str:
        """Return an element where it lies."""
        if name not in self._loaded:
            place = row_major(self._program.stored[name].dims).offset(at)
            return f"{_variable(name)}[{place}]"
        iterator, program = self._loaded[name], self._program
        element = f"{_variable(name)}[{element_offset(iterator, at, self._lying[iterator.tensor])}]"
        element = f"(float){element}" if iterator.is_condition else element
        is_there = inside(iterator, program.dims[name], program.block, self._blocks(), at)
        return f"({is_there} ? {element} : 0.0f)" if is_there else element

    def _blocks(self) -> tuple[str, ...]:
        return _BLOCKS

    @contextmanager
    def _loops(
        self, dims: Dims, reduction: str = "", is_inner: bool = True
    ) -> Iterator[Mapping[str, str]]:
        """Go over all elements; yield an index for each variable. The innermost loop is vectors."""
        at = {dim.variable: "0" for dim in dims}
        real = [dim for dim in dims if dim.size > 1]
        with ExitStack() as stack:
            if not real:
                stack.enter_context(self._text.block("{"))
            for place, dim in enumerate(real):
                index = f"i_{identifier(dim.variable)}"
                at[dim.variable] = index
                if is_inner and place == len(real) - 1:
                    clause = f" reduction({reduction})" if reduction else ""
                    self._text.line(f"#pragma omp simd{clause}")
                size = end_name(dim.variable) if dim.whole else f"{dim.size}"
                head = f"for (long {index} = 0; {index} < {size}; ++{index}) {{"
                stack.enter_context(self._text.block(head))
            yield at


def _type_of(is_condition: bool) -> str:
    return "unsigned char" if is_condition else "float"


def _variable(name: str) -> str:
    return f"tile_{identifier(name)}"


#: Sums are those of ``omp simd``, in any order; nothing else changes what C says.
FLAGS = (
    "-std=c11", "-O3", "-march=native", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math",
    "-shared", "-fPIC",
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
            kind = "bool" if name in self._kernel.conditions else "float32"
            if array.dtype != kind or not array.flags.c_contiguous:
                raise InputError(f"{self._kernel.name}: {name} is no contiguous array of {kind}")
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]

        def run(kept: Sequence[NDArray[Any]] = arrays) -> None:
            function(*pointers)

        return run


def compiler() -> str:
    """Return the path of the system's C compiler.

    Raises:
        MissingDependencyError: there is none.
    """
    found = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
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
        kernel: what to compile.
        folder: where the source and the library are written.

    Raises:
        MissingDependencyError: there is no C compiler.
        InputError: it does not compile.
    """
    source, library = folder / f"{kernel.name}.c", folder / f"{kernel.name}.so"
    source.write_text(kernel.source, encoding="utf-8")
    command = [compiler(), *FLAGS, str(source), "-o", str(library), "-lm"]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        lines = made.stderr.splitlines() or ["the compiler says nothing"]
        reason = next((line for line in lines if "error" in line), lines[0])
        raise InputError(f"{kernel.name}.c: does not compile: {reason}")
    function = getattr(ctypes.CDLL(str(library)), kernel.name)
    function.restype = None
    return CFunction(kernel, function)
