"""Abstract expressions of a program: Table 1 of the paper, as a graph of scalars."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import cast

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.abstract.vocabulary import SCALAR
from relational_tensat.mugraph.graph.arithmetic import COMPARISONS, FUNCTIONS
from relational_tensat.mugraph.graph.described import names
from relational_tensat.mugraph.graph.dims import count, size_of
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.tensor import Graph, Node, build_graph
from relational_tensat.tensor.types import Attrs

_VIEWS = frozenset({"rename", "split", "merge", "repeat"})
#: Functions with a number.
_WITH_NUMBERS = ("scale", "shift", "keep", "power", *(f"is_{name}" for name in COMPARISONS))
#: Of which no axiom says what those of parts are.
OPAQUE_REDUCTIONS = ("rms", "reduce_max")
#: No axiom is about differences: they stay as they are.
_BINARY = frozenset({"add", "mul", "div", "div_or_zero", "sub"})


@dataclass(frozen=True, slots=True)
class AbstractProgram:
    """The abstract expressions of a program.

    Attributes:
        graph: of scalars; its inputs are those of the program that something reads.
        outputs: the graph's values that the program's outputs are, in order.
    """

    graph: Graph
    outputs: tuple[str, ...]

    @property
    def sizes(self) -> set[int]:
        """Over how many elements its sums are."""
        sums = (node for node in self.graph.nodes if node.op == "abstract_sum")
        return {cast(int, node.attrs["size"]) for node in sums}

    @property
    def more_axioms(self) -> tuple[str, ...]:
        """The files of axioms about operators that the paper does not have."""
        has_any = any(node.op == "div_or_zero" for node in self.graph.nodes)
        return ("quotients_or_zero",) if has_any else ()

    def form(self) -> Hashable:
        """Return what is the same for graphs that differ by names only."""
        values = [*self.graph.inputs, *(name for node in self.graph.nodes for name in node.outputs)]
        places = {name: place for place, name in enumerate(values)}
        nodes = tuple(
            (node.op, tuple(sorted(node.attrs.items())), tuple(places[n] for n in node.inputs))
            for node in self.graph.nodes
        )
        return len(self.graph.inputs), nodes, tuple(places[name] for name in self.outputs)


def abstract_program(program: MuGraph) -> AbstractProgram:
    """Return the abstract expressions of a program's tensors, under their names.

    Args:
        program: of operators of libraries only.

    Raises:
        InputError: it is malformed, has kernels, or an operator that has no abstract expression.
    """
    builder = _Builder(program)
    for step in program.steps:
        if not isinstance(step, Operation):
            raise InputError(f"{program.name}: expected operators of libraries, not kernels")
        builder.add(step)
    return builder.build()


def function_name(op: str, attrs: Attrs, elements: int) -> str:
    """Return the name that tells an opaque function from others.

    Args:
        op: the operator.
        attrs: its attributes.
        elements: of how many elements a result is a function: of a root mean square, those under the root;
            of a maximum, those that are compared.
    """
    if op == "rms":
        return f"rms {elements} {attrs['epsilon']}"
    if op == "reduce_max":
        return f"reduce_max {elements}"
    return f"{op} {attrs['value']}" if op in _WITH_NUMBERS else op


class _Builder:
    def __init__(self, program: MuGraph) -> None:
        self._program = program
        self._dims = kernel_tensors(program)
        self._nodes: list[Node] = []
        #: What only has another name: a view, a sum of one element.
        self._alias: dict[str, str] = {}

    def add(self, step: Operation) -> None:
        operands = step.operands
        match step.op:
            case "matmul":
                product = self._node("mul", operands, f"{step.output}·")
                self._sums(product, step)
            case "concat_matmul":
                self._concat_matmul(step)
            case "sum":
                self._sums(operands[0], step)
            case "exp":
                self._node("exp", operands, step.output)
            case "square":
                self._node("mul", (*operands, *operands), step.output)
            case op if op in _VIEWS:
                self._alias[step.output] = self._named(operands[0])
            case op if op in _BINARY:
                self._node(op, operands, step.output)
            case op if op in FUNCTIONS or op in (
                *OPAQUE_REDUCTIONS,
                "pow",
                *COMPARISONS,
                *_WITH_NUMBERS,
            ):
                elements = self._extent(step) if op in OPAQUE_REDUCTIONS else 1
                name = function_name(op, step.attrs, elements)
                self._node("abstract_function", operands, step.output, {"function": name})
            case op:
                raise InputError(f"{self._program.name}: no abstract expression for {op}")

    def build(self) -> AbstractProgram:
        outputs = list(dict.fromkeys(map(self._named, self._program.outputs)))
        read = {name for node in self._nodes for name in node.inputs} | set(outputs)
        inputs = {name: SCALAR for name in self._program.inputs if name in read}
        graph = build_graph(self._program.name, inputs, {}, self._nodes, outputs)
        return AbstractProgram(graph, tuple(map(self._named, self._program.outputs)))

    def _concat_matmul(self, step: Operation) -> None:
        w, x, y, z = step.operands
        sums = []
        for place, (a, b) in enumerate(((w, y), (x, z))):
            product = self._node("mul", (a, b), f"{step.output}·{place}")
            extent = size_of(self._dims[a], names(step.attrs, "over")[place])
            sums.append(self._sum(product, extent, f"{step.output}+{place}"))
        self._node("add", tuple(sums), step.output)

    def _extent(self, step: Operation) -> int:
        """Return the number of elements that become one."""
        over = names(step.attrs, "over")
        return count(tuple(d for d in self._dims[step.operands[0]] if d.variable in over))

    def _sums(self, operand: str, step: Operation) -> None:
        """Sum over one variable after the other: blocks may, so each such sum needs a class."""
        dims, over = self._dims[step.operands[0]], names(step.attrs, "over")
        if not over:
            self._alias[step.output] = self._named(operand)
        for place, variable in enumerate(over):
            output = f"{step.output}+{place}" if place < len(over) - 1 else step.output
            operand = self._sum(operand, size_of(dims, variable), output)

    def _sum(self, operand: str, size: int, output: str) -> str:
        if size == 1:
            self._alias[output] = self._named(operand)
            return output
        return self._node("abstract_sum", (operand,), output, {"size": size})

    def _node(
        self, op: str, operands: tuple[str, ...], output: str, attrs: Attrs | None = None
    ) -> str:
        operands = tuple(map(self._named, operands))
        self._nodes.append(Node(op, operands, (output,), attrs or {}))
        return output

    def _named(self, tensor: str) -> str:
        return self._alias.get(tensor, tensor)
