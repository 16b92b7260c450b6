"""The operators of TASO's and TENSAT's rule files: their names, numbers, parameters and codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

#: Where a tensor stands among the children of an operator in text.
TENSOR = "tensor"


@dataclass(frozen=True, slots=True)
class FileOperator:
    """One operator as the files write it.

    Attributes:
        name: in text.
        number: TASO's OpType in protocol buffers; None for what only text has.
        children: in text, in order: ``TENSOR``, or the name of an integer parameter.
    """

    name: str
    number: int | None
    children: tuple[str, ...]

    @property
    def params(self) -> tuple[str, ...]:
        """The names of the integer parameters."""
        return tuple(child for child in self.children if child != TENSOR)

    @property
    def arity(self) -> int:
        """The number of tensors."""
        return self.children.count(TENSOR)


@dataclass(frozen=True, slots=True)
class Node:
    """An operator of a file applied to tensors; concatenations of any arity are ``concat``.

    Attributes:
        params: integers by name, in the order of ``FileOperator.params``.
    """

    op: str
    operands: tuple[Tree, ...]
    params: tuple[tuple[str, int], ...] = ()

    def param(self, name: str) -> int:
        """Return a parameter's value."""
        return dict(self.params)[name]


@dataclass(frozen=True, slots=True)
class Input:
    """A variable of a file's rule: any tensor."""

    name: str


Tree: TypeAlias = Node | Input


@dataclass(frozen=True, slots=True)
class FileRule:
    """One rule of a file, not yet in the project's language.

    Attributes:
        number: its place among the rules of the file, from 0.
        line: of its first line in a text file; 0 in protocol buffers.
        sources, targets: ``targets[i]`` may replace ``sources[i]``.
    """

    file: str
    number: int
    line: int
    sources: tuple[Node, ...]
    targets: tuple[Tree, ...]

    @property
    def place(self) -> str:
        """Where it stands, as messages and comments say it."""
        return rule_place(self.file, self.number, self.line)


def rule_place(file: str, number: int, line: int) -> str:
    """Return where a rule stands: ``FILE:LINE``, or ``FILE: rule N`` where there are no lines."""
    return f"{file}:{line}" if line else f"{file}: rule {number}"


def _concat(name: str, arity: int) -> FileOperator:
    # One OpType for all; in protocol buffers the number of tensors says which it is.
    return FileOperator(name, 12 if arity == 2 else None, ("axis", "ndim", *[TENSOR] * arity))


_WINDOW = ("kernel_h", "kernel_w", "stride_h", "stride_w", "pad", "act")
_CONV = ("stride_h", "stride_w", "pad", "act")
_ALL = (
    FileOperator("conv2d", 3, (*_CONV, TENSOR, TENSOR)),
    FileOperator("poolmax", 6, (TENSOR, *_WINDOW)),
    FileOperator("poolavg", 7, (TENSOR, *_WINDOW)),
    FileOperator("relu", 8, (TENSOR,)),
    FileOperator("sigmoid", 9, (TENSOR,)),
    FileOperator("tanh", 10, (TENSOR,)),
    _concat("concat", 2), _concat("concat3", 3), _concat("concat4", 4), _concat("concat5", 5),
    FileOperator("split", 13, ("axis", TENSOR)),
    FileOperator("split_0", None, (TENSOR,)),
    FileOperator("split_1", None, (TENSOR,)),
    FileOperator("ewadd", 16, (TENSOR, TENSOR)),
    FileOperator("ewmul", 17, (TENSOR, TENSOR)),
    FileOperator("matmul", 18, ("act", TENSOR, TENSOR)),
    FileOperator("enlarge", 20, (TENSOR, TENSOR)),
    FileOperator("merge", 21, (TENSOR, "count")),
)  # fmt: skip
BY_NAME = {operator.name: operator for operator in _ALL}
BY_NUMBER = {operator.number: operator for operator in _ALL if operator.number is not None}

#: TASO's keys of integer parameters in protocol buffers, by the names used here.
PARAM_KEYS = {
    "kernel_h": 4, "kernel_w": 5, "stride_h": 6, "stride_w": 7, "pad": 8, "act": 9, "ndim": 10,
    "axis": 11, "count": 14,
}  # fmt: skip

#: What the integers of ``act`` and ``pad`` mean.
ACTIVATIONS = ("none", "sigmoid", "relu", "tanh")
PADDINGS = ("same", "valid")

#: Operators in one term, at most: TASO's have up to six. More is a damaged file, or worse: shared
#: operators of protocol buffers could stand for a term that fills the memory.
MOST_OPERATORS = 100


def concat_name(arity: int) -> str:
    """Return the name in text of a concatenation of that many tensors."""
    return "concat" if arity == 2 else f"concat{arity}"


def node(operator: FileOperator, operands: tuple[Tree, ...], values: dict[str, int]) -> Node:
    """Return an operator applied; ``values`` has all its parameters, and may have others."""
    name = "concat" if operator.name.startswith("concat") else operator.name
    return Node(name, operands, tuple((param, values[param]) for param in operator.params))
