"""Where the elements of a kernel's tensors are in C, and sweeps over them.

A kernel whose blocks only part its results is cut for a processor (``c_tiles``): the indices of tensors are
those within tiles. Tiles lie on the stack, in the order of sweeps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from relational_tensat.mugraph.graph.dims import Dim, Dims
from relational_tensat.mugraph.graph.validity import BlockStage
from relational_tensat.mugraph.kernels.c_sweeps import Body, Loop, Strides, Sweep, loops_of
from relational_tensat.mugraph.kernels.c_tiles import CpuTiles
from relational_tensat.mugraph.kernels.indices import (
    Formulas,
    bounds_of,
    element_offset,
    inside,
    source_layout,
)
from relational_tensat.mugraph.kernels.layouts import Layout, row_major, sum_text
from relational_tensat.mugraph.kernels.statements import (
    Load,
    Program,
    Statement,
    Text,
    identifier,
)

#: C's names of element types.
C_TYPES = {
    "float32": "float",
    "bool": "unsigned char",
    "uint8": "unsigned char",
    "int8": "signed char",
}
BLOCKS = ("block_x", "block_y", "block_z")
_VIEWS = ("rename", "split", "merge", "window")


class CTensors(Formulas):
    """Spells elements, and writes loops over them.

    Args:
        program: the kernel.
        lying: the dims of operands and results in their order in memory.
        tiles: how a kernel of one block is cut; None for one with a grid or a loop.
        quantized: element types of operands and results that are integers in memory.
    """

    names = MappingProxyType({"exp": "exp_of({})", "erf": "erf_of({})", "tanh": "tanh_of({})"})

    def __init__(
        self, program: Program, lying: Mapping[str, Dims], tiles: CpuTiles | None,
        quantized: Mapping[str, str] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        super().__init__(program)
        self._quantized = quantized
        self._text, self._lying, self._tiles = Text(), lying, tiles
        self._cut = {} if tiles is None else dict(tiles.sizes)
        self._statements = {stage: program.statements[stage] for stage in BlockStage}
        loads = [s for each in self._statements.values() for s in each if isinstance(s, Load)]
        self._loaded = {load.output: load.iterator for load in loads}
        self._ends: dict[str, str] = {}
        self._layouts: dict[str, Layout] = {}
        self._sweep = Sweep(self._text)
        self._locals: dict[tuple[str, tuple[str, ...]], str] = {}
        reads = Counter(n for formula in program.formulas.values() for n in formula.operands)
        self._several = {name for name in program.formulas if reads[name] > 1}
        self._number = 0
        dims = (dim for own in program.dims.values() for dim in own)
        self._sizes = {dim.variable: dim.size for dim in dims}
        self._done: list[Statement] = []  # by the sweep of another one

    def _tile(self, dims: Dims) -> Dims:
        return dims if self._tiles is None else self._tiles.dims(dims)

    def _is_cut(self, dim: Dim) -> bool:
        return 0 < self._cut.get(dim.variable, 0) < dim.size

    def _from(self, start: str, tile: Dims, strides: Strides) -> str:
        """Return where the tile begins, in elements."""
        cut = [(start_of(dim.variable), strides[dim.variable]) for dim in tile if self._is_cut(dim)]
        return sum_text([(start, 1), *cut])

    def _is_static(self, variable: str) -> bool:
        """Whether a variable's index is that of its loop: no grid, no loop, no tiles part it."""
        if self._tiles is None:
            return False
        return not self._is_cut(Dim(variable, self._sizes[variable]))

    def _swept(
        self, dims: Dims, reads: Sequence[str], written: list[Strides] | None, body: Body,
        *, may_repeat: bool = True,
    ) -> None:  # fmt: skip
        """Sweep over a tile in the order of what is written.

        Args:
            dims: of all elements.
            reads: the tensors whose elements are read.
            written: the strides of what is written; None where these are not known.
            body: as for ``Sweep``.
            may_repeat: whether it may be run twice for an element.
        """
        order = self._tile(dims)
        if written:
            place = {d.variable: -abs(written[0].get(d.variable, 0)) for d in order}
            order = tuple(sorted(order, key=lambda dim: place[dim.variable]))
        loops, breaks = self._loops(order, reads, written)
        at = {dim.variable: "0" for dim in dims}
        self._write(breaks, loops, at, body, may_repeat=may_repeat)

    def _loops(
        self, order: Dims, reads: Sequence[str], written: list[Strides] | None
    ) -> tuple[list[Loop], dict[str, list[int]]]:
        """Return the loops over a tile, and where those of windows are parted."""
        strides: list[Strides] | None = list(written or [])
        breaks: dict[str, list[int]] = {}
        apart: set[str] = set()
        for name in {leaf for each in reads for leaf in self._leaves(each)}:
            if name not in self._program.stored:
                strides = None  # a view
                continue
            if strides is not None:
                strides.append(self._strides(name))
            for bound in bounds_of(self._loaded[name]) if name in self._loaded else ():
                own = [dim for dim in bound.dims if dim.size > 1]
                apart.update(dim.variable for dim in own)
                if len(own) == 1 and self._is_static(own[0].variable):
                    edges = bound.indices(own[0].variable)
                    breaks.setdefault(own[0].variable, []).extend(edges)
        known = strides if written is not None else None
        loops = loops_of(order, self._ends, known, frozenset(apart))
        return loops, {name: sorted(set(places)) for name, places in breaks.items()}

    def _write(
        self, breaks: dict[str, list[int]], loops: Sequence[Loop], at: Mapping[str, str], body: Body,
        pragma: str | None = "", *, may_repeat: bool = False,
    ) -> None:  # fmt: skip
        self._sweep = Sweep(self._text, breaks, may_repeat=may_repeat)

        def fresh(place: Mapping[str, str]) -> None:
            self._locals = {}
            body(place)
            self._locals = {}

        if loops:
            self._sweep.write(loops, at, fresh, pragma)
        else:
            with self._text.block("{"):
                fresh(at)

    def _leaves(self, name: str) -> Iterator[str]:
        """Yield the stored tensors that a tensor is a formula of, and views within."""
        if name in self._program.stored:
            yield name
            return
        formula = self._program.formulas[name]
        if formula.op in _VIEWS:
            yield name
        for operand in formula.operands:
            yield from self._leaves(operand)

    def _strides(self, name: str) -> Strides:
        """Return the strides of a stored tensor's tile where it lies."""
        if name in self._layouts:
            return self._layouts[name].strides
        if name in self._loaded:
            iterator = self._loaded[name]
            return source_layout(iterator, self._lying[iterator.tensor]).strides
        return row_major(self._tile(self._program.stored[name].dims)).strides

    def stored(self, name: str, at: Mapping[str, str]) -> str:
        """Return an element where it lies."""
        if name in self._layouts:
            return f"{variable_of(name)}[{self._layouts[name].offset(at)}]"
        iterator = self._loaded[name]
        element = (
            f"{variable_of(name)}[{element_offset(iterator, at, self._lying[iterator.tensor])}]"
        )
        if iterator.is_condition:
            element = f"(float){element}"
        elif iterator.tensor in self._quantized:
            scale, zero = scale_of(iterator.tensor), zero_of(iterator.tensor)
            element = f"dequantized({element}, {scale}, {zero})"
        is_there = self._inside(name, at)
        if is_there == "0":
            return "0.0f"
        return f"({is_there} ? {element} : 0.0f)" if is_there else element

    def _inside(self, name: str, at: Mapping[str, str]) -> str:
        """Return the condition that an element of a window is not 0 whatever is there: empty for none."""
        iterator, program = self._loaded[name], self._program
        tile = program.dims[name]
        if self._tiles is None:
            return inside(iterator, tile, program.block, BLOCKS, at)
        unknown = False
        for bound in bounds_of(iterator):
            own = [dim.variable for dim in bound.dims if dim.size > 1]
            if len(own) != 1 or not self._is_static(own[0]):
                unknown = True
                continue
            begin, end = bound.indices(own[0])
            first, last = self._sweep.ranges.get(own[0], (0, end + 1))
            if last <= begin or first >= end:
                return "0"
            unknown = unknown or first < begin or last > end
        if not unknown:
            return ""
        cut = {dim.variable for dim in tile if self._is_cut(dim)}
        whole = {n: f"({start_of(n)} + {i})" if n in cut else i for n, i in at.items()}
        return inside(iterator, tile, program.block, BLOCKS, whole)

    def element(self, name: str, at: Mapping[str, str]) -> str:
        """Return an element; elements that several read are worked out once."""
        program = self._program
        if name in program.stored or program.formulas[name].op in (*_VIEWS, "repeat"):
            return super().element(name, at)
        formula = program.formulas[name]
        if formula.op in ("inverse", "inverse_scale"):
            return f"{formula.op}({self.element(formula.operands[0], at)})"
        key = name, tuple(at[dim.variable] for dim in program.dims[name])
        if key in self._locals:
            return self._locals[key]
        if formula.op == "quotient":
            made = f"({' * '.join(self.element(operand, at) for operand in formula.operands)})"
        else:
            made = super().element(name, at)
        if name not in self._several:
            return made
        self._number += 1
        self._locals[key] = f"value_{self._number}"
        self._text.line(f"const float value_{self._number} = {made};")
        return self._locals[key]


def scale_of(tensor: str) -> str:
    """Return what C calls the scale of integers."""
    return f"scale_{identifier(tensor)}"


def zero_of(tensor: str) -> str:
    """Return what C calls the zero point of integers."""
    return f"zero_{identifier(tensor)}"


def variable_of(name: str) -> str:
    """Return what C calls a tile."""
    return f"tile_{identifier(name)}"


def start_of(variable: str) -> str:
    """Return what C calls the index of a tile's first element along a variable that is cut."""
    return f"at_{identifier(variable)}"
