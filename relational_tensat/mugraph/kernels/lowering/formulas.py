"""Formulas as C spells them: an element of a tensor, given an index for each of its variables."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, cast

from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.input_windows import Window
from relational_tensat.mugraph.graph.mugraph import Operation
from relational_tensat.mugraph.kernels.lowering.statements import MAXIMA, Program, Reduce, fade_of
from relational_tensat.mugraph.kernels.lowering.views import Indexing, viewed_index, window_index
from relational_tensat.tensor.spellings import SPELLINGS


class Formulas(ABC):
    """Spells the tensors of a program; how stored ones are read is the target's."""

    #: What a target calls functions otherwise.
    names: ClassVar[Mapping[str, str]] = {}

    def __init__(self, program: Program) -> None:
        self._program = program

    @abstractmethod
    def stored(self, name: str, at: Mapping[str, str]) -> str:
        """Return the element of a stored tensor, as a float."""

    def element(self, name: str, at: Mapping[str, str]) -> str:
        """Return an element of any tensor, as a float.

        Args:
            name: of the tensor.
            at: an index for each of its variables at least.
        """
        if name in self._program.stored:
            return self.stored(name, at)
        formula = self._program.formulas[name]
        operands = formula.operands
        match formula.op:
            case "scale":
                return f"({self.element(operands[0], at)} * {number(formula.attrs['value'])})"
            case "shift":
                return f"({self.element(operands[0], at)} + {number(formula.attrs['value'])})"
            case "root":
                mean = f"{self.element(operands[0], at)} * {number(formula.attrs['value'])}"
                return f"sqrtf({mean} + {number(formula.attrs['epsilon'])})"
            case op if op in SPELLINGS:
                return self.names.get(op, SPELLINGS[op].c).format(
                    *(self.element(name, at) for name in operands),
                    value=number(formula.attrs.get("value", 0.0)),
                )
        element = self.element(operands[0], self.viewed(formula, at))
        is_there = _inside(formula, at) if formula.op == "window" else ""
        return f"({is_there} ? {element} : 0.0f)" if is_there else element

    def place(self, name: str, at: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
        """Return the stored tensor that a tensor is a view of, and the element's index there."""
        while name not in self._program.stored:
            formula = self._program.formulas[name]
            name, at = formula.operands[0], self.viewed(formula, at)
        return name, at

    def viewed(self, view: Operation, at: Mapping[str, str]) -> Mapping[str, str]:
        """Return the index of a view's element in what it is a view of."""
        source = self._program.dims[view.operands[0]]
        return viewed_index(view, source, at, _INDEXING)


def parts_of(index: str, dims: Dims) -> dict[str, str]:
    """Return the index of each variable where one index counts them all, the last the fastest."""
    real = [dim for dim in dims if dim.size > 1]
    result = {dim.variable: "0" for dim in dims}
    step = 1
    for place, dim in reversed(list(enumerate(real))):
        text = index if step == 1 else f"{index} / {step}"
        result[dim.variable] = text if place == 0 else f"{text} % {dim.size}"
        step *= dim.size
    simple = len(real) <= 1
    return {name: text if simple or text == "0" else f"({text})" for name, text in result.items()}


def summand(reduce: Reduce, value: str) -> str:
    """Return what a reduction takes of an element."""
    return f"square({value})" if reduce.kind == "squares" else value


def reduced(reduce: Reduce, cell_of: Callable[[str], str]) -> list[str]:
    """Return the lines that store one result of a reduction, which is x.

    Args:
        reduce: the reduction.
        cell_of: where a tensor has the element of this result.
    """
    cell = cell_of(reduce.output)
    if reduce.fade:
        return [
            f"const float before = {cell}, now = larger(before, x);",
            f"{cell_of(reduce.fade)} = fade(before, now);",
            f"{cell} = now;",
        ]
    if reduce.rescale:
        return [f"{cell} = {cell} * {cell_of(fade_of(reduce.rescale))} + x;"]
    if reduce.adds and reduce.kind in MAXIMA:
        return [f"{cell} = larger({cell}, x);"]
    return [f"{cell} {'+=' if reduce.adds else '='} x;"]


def joined(parts: Sequence[tuple[str, int]]) -> str:
    """Return one index of several, the last the fastest, each with its extent."""
    text = "0"
    for index, extent in parts:
        if extent > 1 and text != "0":
            text = f"({text} * {extent}{'' if index == '0' else f' + {index}'})"
        elif extent > 1:
            text = index
    return text


def number(value: object) -> str:
    """Return a number as C spells a float; infinity without a header."""
    spelled = float(cast(float, value))
    if math.isinf(spelled):
        return f"({math.copysign(1.0, spelled)!r}f / 0.0f)"
    return f"{spelled!r}f"


def _taken(index: str, window: Window) -> str:
    step = index if window.step == 1 else f"{window.step} * ({index})"
    return f"({window.offset} + {step})"


_INDEXING = Indexing(joined, parts_of, _taken)


def _inside(formula: Operation, at: Mapping[str, str]) -> str:
    """Return the condition that a window's element is not 0 whatever it is of; empty for none."""
    window = Window.of(formula.attrs)
    index = window_index(window, at, _INDEXING)
    conditions = [f"({index}) >= {window.first}"] if window.first else []
    conditions += [f"({index}) < {window.last}"] if window.last < window.size else []
    return " && ".join(conditions)
