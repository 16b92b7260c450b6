"""The terms of a search of blocks: operands, jobs, and how each term is derived."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relational_tensat.mugraph.graph.arithmetic import Labelled
from relational_tensat.mugraph.graph.dims import Dims, variables
from relational_tensat.mugraph.graph.mugraph import Accumulate, BlockStep, InputIterator, Operation
from relational_tensat.mugraph.search.structure import BlockConfiguration
from relational_tensat.tensor.types import Attrs


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor in device memory that blocks may load, at structural sizes.

    Attributes:
        uses: bits of the program's inputs that it depends on.
        is_wide: whether it is no tensor of the program, but a sum of parts, say, which may be larger.
        is_condition: whether its elements are bools.
    """

    name: str
    dims: Dims
    value: Labelled
    abstract_class: int
    uses: int
    is_wide: bool = False
    is_condition: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """A term that a kernel may store.

    Attributes:
        term, config: its number, and its configuration's.
        abstract_class: of its abstract expression.
        uses: bits of the program's inputs that it depends on.
        loads: bits of the configuration's operands that it depends on.
    """

    term: int
    config: int
    abstract_class: int
    uses: int
    loads: int


@dataclass(frozen=True, slots=True)
class Job:
    """The configurations of blocks that load the same tensors."""

    operands: tuple[Operand, ...]
    configurations: tuple[BlockConfiguration, ...]


@dataclass(frozen=True, slots=True)
class TermDerivation:
    """How a term is computed; ``a`` and ``b`` are terms, ``b`` is 0 where there is one operand.

    Attributes:
        op: the operator, or ``accumulate`` and its kind.
        name: of an opaque function, with its parameters.
        variable: the reduced variable, or empty.
    """

    op: str
    name: str
    variable: str
    a: int
    b: int


@dataclass(slots=True)
class SearchCounts:
    """How large a search was."""

    configurations: int = 0
    candidates: int = 0
    terms: int = 0
    undefined: int = 0


@dataclass(frozen=True, slots=True)
class GrownTerms:
    """The terms of some configurations, as one process gives them to another.

    Attributes:
        terms, derivations: rows of the tables.
        values: by term.
        loaded: the tensors that terms are tiles of.
        counts: how large the search was.
    """

    terms: Sequence[Sequence[Any]]
    derivations: Sequence[Sequence[Any]]
    values: Mapping[int, Labelled]
    loaded: Mapping[int, Operand]
    counts: SearchCounts


def step_of(derivation: TermDerivation, names: Mapping[int, str], output: str) -> BlockStep:
    """Return the step of a block that a derivation is.

    Args:
        names: the tensors' names by their terms.
        output: the result's name.
    """
    a, over = names[derivation.a], (derivation.variable,)
    _, *parameters = derivation.name.split(" ") if derivation.name else [""]
    match derivation.op:
        case "accumulate sum":
            return Accumulate(a, output)
        case "accumulate concat":
            return Accumulate(a, output, "concat", over)
        case "accumulate rms":
            return Accumulate(a, output, "rms", over, epsilon=float(parameters[1]))
        case "accumulate reduce_max":
            return Accumulate(a, output, "reduce_max", over)
        case "reduce_max":
            return Operation("reduce_max", (a,), output, {"over": over})
        case "rms":
            attrs: Attrs = {"over": over, "epsilon": float(parameters[1])}
            return Operation("rms", (a,), output, attrs)
        case "sum":
            return Operation("sum", (a,), output, {"over": over})
        case "matmul":
            return Operation("matmul", (names[derivation.b], a), output, {"over": over})
    operands = (a, names[derivation.b]) if derivation.b else (a,)
    if derivation.op in ("add", "mul"):  # of terms, the later one is first
        operands = operands[::-1]
    number: Attrs = {"value": float(parameters[0])} if parameters else {}
    return Operation(derivation.op, operands, output, number)


def iterator_of(
    tensor: str, output: str, dims: Dims, configuration: BlockConfiguration
) -> InputIterator:
    """Return how blocks of a configuration load a tensor: the maps follow from its index variables."""
    mine = variables(dims)
    imap = tuple(v.name if v.name in mine else "" for v in configuration.grid)
    loop = configuration.loop
    return InputIterator(tensor, output, imap, loop.name if loop and loop.name in mine else "")


def fingerprint(value: Labelled) -> int:
    """Return a number that equal values of equal labels share, and others do not but by chance."""
    labels = tuple(sorted(value.labels))
    data = np.ascontiguousarray(value.ordered(labels).data, np.int64)
    digest = hashlib.blake2b(repr((labels, data.shape)).encode(), digest_size=8)
    digest.update(data.tobytes())
    return int.from_bytes(digest.digest(), "little")
