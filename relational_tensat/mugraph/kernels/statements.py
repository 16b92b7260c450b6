"""A block, statement by statement: all targets that spell out their loops are written from these.

A statement is one sweep over the elements of a tensor. Between sweeps tensors are *stored*: in memory that
all threads of the block share, or in registers, laid out as tensor cores leave a product there. All others
are formulas of stored ones, worked out wherever they are read. Names are identifiers of the languages, and
code is lines with an indentation.
"""

from __future__ import annotations

import hashlib
import keyword
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from relational_tensat.mugraph.graph.dims import Dims, count, variables
from relational_tensat.mugraph.graph.mugraph import (
    BlockGraph,
    InputIterator,
    Kernel,
    Operation,
    Saver,
)
from relational_tensat.mugraph.graph.partial_tiles import TileSplit
from relational_tensat.mugraph.graph.validity import BlockStage


class Text:
    """Collects lines; blocks indent what is in them."""

    def __init__(self, indent: int = 2) -> None:
        """Begin; each block is indented by so many spaces."""
        self._lines: list[str] = []
        self._depth, self._indent = 0, " " * indent

    def line(self, *lines: str) -> None:
        """Add lines; empty ones stay empty."""
        self._lines += [f"{self._indent * self._depth}{line}".rstrip() for line in lines]

    @contextmanager
    def block(self, head: str, end: str = "}") -> Iterator[None]:
        """Add a head, the lines added meanwhile one deeper, and an end, if it is not empty."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1
        if end:
            self.line(end)

    def __str__(self) -> str:
        return "\n".join(self._lines) + "\n"


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Names that code has beside those of a graph, or makes of them.
_TAKEN = re.compile(
    r"(in|out|tile|sums|to|end|i|n|tl|triton|block|thread|WARPS|T|fused|arena)(_.*)?|__.*|.*_(now|squares|warps)"
    r"|asm|auto|bool|case|catch|char|const|default|delete|do|double|enum|explicit|export|extern|float|friend|goto"
    r"|inline|int|long|mutable|namespace|new|operator|private|protected|public|register|restrict|short|signed|sizeof"
    r"|static|struct|switch|template|this|throw|typedef|typename|union|unsigned|using|virtual|void|volatile|main"
)


def identifier(name: str) -> str:
    """Return a name that C and Python take; other names get a digest of their own."""
    if _PLAIN.fullmatch(name) and not keyword.iskeyword(name) and not _TAKEN.fullmatch(name):
        return name
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"n_{plain}_{digest[:16]}"


#: Reductions to the largest element, each with what that of nothing is.
MAXIMA: Mapping[str, float] = {"max": -3.4028234663852886e38, "reduce_max": -math.inf}


@dataclass(frozen=True, slots=True)
class KernelFrame:
    """How a product's dims are those of matrices: a batch of them, rows, columns."""

    batch: Dims
    rows: Dims
    columns: Dims

    @property
    def dims(self) -> Dims:
        """All of them."""
        return self.batch + self.rows + self.columns

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many matrices, rows and columns."""
        return count(self.batch), count(self.rows), count(self.columns)


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor that lies somewhere between two statements.

    Attributes:
        dims: its dims, in the order of its layout.
        is_wide: whether its elements are float32; otherwise they are of the kernel's element type.
        frame: how registers hold it; None where it lies in shared memory.
        initial: its value before the loop, if the loop adds to it.
    """

    dims: Dims
    is_wide: bool
    frame: KernelFrame | None = None
    initial: float | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """Copy a tile from device memory."""

    iterator: InputIterator

    @property
    def output(self) -> str:
        """The tile."""
        return self.iterator.output


@dataclass(frozen=True, slots=True)
class Multiply:
    """A matrix product into registers.

    Attributes:
        pairs: two stored operands and the variables that are summed over; the products are added up.
        adds: whether to what is there.
        rescale: the running maximum whose last step scales what is there.
    """

    output: str
    pairs: tuple[tuple[str, str, tuple[str, ...]], ...]
    adds: bool = False
    rescale: str = ""


@dataclass(frozen=True, slots=True)
class Compute:
    """Work out a formula for each element and store it.

    Attributes:
        adds, rescale: as in ``Multiply``.
        along: the variable along which each iteration writes a part of its own.
    """

    output: str
    operand: str
    adds: bool = False
    rescale: str = ""
    along: str = ""


@dataclass(frozen=True, slots=True)
class Reduce:
    """A formula's sums, maxima or sums of squares over some variables.

    Attributes:
        kind: ``sum``, ``squares``, ``reduce_max`` or ``max``, which is the lowest finite number at least.
        adds: whether to what is there; with maxima, whichever is larger.
        rescale: as in ``Multiply``.
        fade: where to store by how much a running maximum has moved: exp(before - now).
    """

    output: str
    operand: str
    over: tuple[str, ...]
    kind: str
    adds: bool = False
    rescale: str = ""
    fade: str = ""


@dataclass(frozen=True, slots=True)
class Save:
    """Write a formula's elements to device memory."""

    saver: Saver

    @property
    def output(self) -> str:
        """The tensor in device memory."""
        return self.saver.output


Statement: TypeAlias = Load | Multiply | Compute | Reduce | Save


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel as statements.

    Attributes:
        device: the dims of its operands in device memory.
        statements: by stage, in order; stores come after the loop.
        stored: tensors by name.
        formulas: the tensors that are not stored; ``root`` is sqrt(x value + epsilon), ``same`` x.
        dims: of all tensors of the block.
        partial: the splits whose last tile is smaller, by variable.
    """

    kernel: Kernel
    device: Mapping[str, Dims]
    statements: Mapping[BlockStage, tuple[Statement, ...]]
    stored: Mapping[str, StoredTensor]
    formulas: Mapping[str, Operation]
    dims: Mapping[str, Dims]
    partial: Mapping[str, TileSplit] = field(default_factory=dict)

    @property
    def block(self) -> BlockGraph:
        """The block graph."""
        return self.kernel.block

    def sources(self, name: str) -> set[str]:
        """Return the stored tensors that a tensor is a formula of; itself, if it is stored."""
        if name in self.stored:
            return {name}
        return set().union(*(self.sources(operand) for operand in self.formulas[name].operands))

    def frame(self, name: str) -> KernelFrame | None:
        """Return the frame of the registers that a tensor is a formula of; None where it needs none."""
        frames = (self.stored[source].frame for source in sorted(self.sources(name)))
        return next((frame for frame in frames if frame is not None), None)

    def reads(self, statement: Statement) -> set[str]:
        """Return the stored tensors that a statement reads."""
        match statement:
            case Load():
                return set()
            case Multiply():
                names = {name for a, b, _ in statement.pairs for name in (a, b)}
                adds, rescale = statement.adds, statement.rescale
            case Compute() | Reduce():
                names, adds, rescale = {statement.operand}, statement.adds, statement.rescale
            case Save():
                names, adds, rescale = {statement.saver.tile}, False, ""
        more = {fade_of(rescale)} if rescale else set()
        own = {statement.output} if adds else set()
        return set().union(*map(self.sources, names)) | more | own

    def writes(self, statement: Statement) -> set[str]:
        """Return the stored tensors that a statement writes."""
        match statement:
            case Save():
                return set()
            case Reduce():
                names = {statement.output, statement.fade, partials_of(statement.output)}
                return names & set(self.stored)
            case _:
                return {statement.output}


def fade_of(running_max: str) -> str:
    """Return the name of the factor by which a running maximum's last step scales what was added before."""
    return f"{running_max}_fade"


def partials_of(output: str) -> str:
    """Return the name of what each warp contributes to a reduction, where several do."""
    return f"{output}_partials"


def is_row_sum(frame: KernelFrame, over: tuple[str, ...]) -> bool:
    """Return whether summing over these variables leaves the rows of a frame."""
    columns = set(variables(frame.columns))
    return bool(columns) and set(over) == columns
