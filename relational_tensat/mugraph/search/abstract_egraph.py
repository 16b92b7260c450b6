"""The abstract e-graph of a program: its expressions on scalars, saturated by the engine.

A tensor's abstract expression (Table 1 of the paper) is a graph of scalars. Sums, products, quotients and
exponentials are those of tensors; a sum says how many elements it is of; a function is opaque and has a
name. The axioms are the rules of ``rules/mugraph``, and one for each pair of sizes of a program.

An abstract expression can be completed to the program's if and only if it has a class here. Every e-node
was made as a part of something that equals an output. The subexpression axioms of Table 2 say the same,
reflexive and transitive closure included. So pruning is an inner join with its e-nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from relational_tensat.base.errors import InputError
from relational_tensat.base.files import resource_dir
from relational_tensat.base.process import ProcessOptions
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.mugraph.graph.arithmetic import COMPARISONS, FUNCTIONS
from relational_tensat.mugraph.graph.dims import count, size_of
from relational_tensat.mugraph.graph.mu_operator import names
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import read_rule_file
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph, Node, build_graph
from relational_tensat.tensor.operators.attributes import Attr
from relational_tensat.tensor.operators.base import Operator, Types, Values, tensor
from relational_tensat.tensor.operators.registry import register, unregister
from relational_tensat.tensor.types import Attrs, TensorType

#: No program of the paper needs half as many.
_MOST_ENODES = 100_000
_MOST_ITERATIONS = 100
#: So many e-graphs of at most so many e-nodes are kept.
_MOST_KEPT = 64
_MOST_KEPT_ENODES = 5_000


@dataclass(frozen=True, slots=True)
class AbstractEGraph:
    """A saturated e-graph of abstract expressions.

    Attributes:
        database: its tables, and ``abstract``, its e-nodes for joins; further tables may be put there.
        classes: of the program's inputs that something reads, by name.
        outputs: the classes of the program's outputs, in order.
        e_nodes, e_classes: its size.
        is_saturated: whether no axiom has anything to add; if not, pruning may lose μGraphs.
    """

    database: Database
    classes: Mapping[str, int]
    outputs: tuple[int, ...]
    e_nodes: int
    e_classes: int
    is_saturated: bool


@dataclass(frozen=True, slots=True)
class _Kept:
    """A saturated e-graph without its database: the rows of ``abstract``, and classes by place."""

    rows: tuple[tuple[Any, ...], ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    e_nodes: int
    e_classes: int


#: Those of this process, the last used ones last: parts of a model are often alike but for names and sizes
#: that nothing is summed over.
_kept: dict[Hashable, _Kept] = {}


def saturated(program: MuGraph, time_limit_s: float | None = None) -> AbstractEGraph:
    """Return the abstract e-graph of a program.

    Args:
        program: of operators of libraries only.
        time_limit_s: for saturation; None for no limit.

    Raises:
        InputError: it has an operator without an abstract expression.
    """
    with abstract_operators():
        builder = _AbstractBuilder(program)
        for step in program.steps:
            if not isinstance(step, Operation):
                raise InputError(f"{program.name}: expected operators of libraries, not kernels")
            builder.add(step)
        abstract = builder.build()
        form = abstract.form()
        kept = _kept.pop(form, None)
        if kept is not None:
            _kept[form] = kept
            return _reopened(kept, abstract.graph.inputs)
        made = _saturated(abstract, time_limit_s)
    if made.is_saturated and made.e_nodes <= _MOST_KEPT_ENODES:
        rows = made.database.execute("FROM abstract", name="mugraph/abstract_rows")
        classes = tuple(made.classes.values())
        _kept[form] = _Kept(
            tuple(map(tuple, rows)), classes, made.outputs, made.e_nodes, made.e_classes
        )
        if len(_kept) > _MOST_KEPT:
            del _kept[next(iter(_kept))]
    return made


def _saturated(abstract: AbstractProgram, time_limit_s: float | None) -> AbstractEGraph:
    options = ExplorationOptions(
        iterations=_MOST_ITERATIONS,
        node_limit=_MOST_ENODES,
        time_limit_s=time_limit_s,
        cycle_filter="none",  # without cancellation no axiom makes a class a part of itself
        multi_iterations=0,
    )
    egraph = EGraph.create(abstract.graph, process=ProcessOptions(threads=1))
    exploration = explore(egraph, axioms(abstract.sizes, abstract.more_axioms), options)
    database = egraph.database
    database.run("mugraph/abstract")
    classes = {str(name): int(number) for name, number in database.run("mugraph/classes")}
    return AbstractEGraph(
        database,
        {name: classes[name] for name in abstract.graph.inputs},
        tuple(classes[name] for name in abstract.outputs),
        egraph.e_nodes,
        egraph.e_classes,
        exploration.stop_reason == "saturated",
    )


def _reopened(kept: _Kept, inputs: Iterable[str]) -> AbstractEGraph:
    database = Database(process=ProcessOptions(threads=1))
    database.script("mugraph/abstract_table")
    database.append("abstract", kept.rows)
    classes = dict(zip(inputs, kept.inputs, strict=True))
    return AbstractEGraph(
        database, classes, kept.outputs, kept.e_nodes, kept.e_classes, is_saturated=True
    )


#: The type of every abstract expression.
SCALAR = TensorType("float32", ())


class AbstractSum(Operator):
    """The sum of ``size`` elements, whichever."""

    name = "abstract_sum"
    attrs = (Attr("size", "int"),)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        return tensor(inputs[0], self.name)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return attrs["size"] * inputs[0]


class AbstractFunction(Operator):
    """A function of one element, or of two in their order, of which nothing is known but its name."""

    name = "abstract_function"
    arity = (1, 2)
    attrs = (Attr("function", "str"),)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        return tensor(inputs[0], self.name)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        """Raise: it has no value.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(self.name)


class QuotientOrZero(Operator):
    """The quotient of two elements, 0 where the second is 0 or NaN; it has axioms of its own."""

    name = "div_or_zero"
    arity = (2, 2)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        """Return the operands' type."""
        return tensor(inputs[0], self.name)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        a, b = inputs
        return a / b if b else 0.0


_OPERATORS = (AbstractSum, AbstractFunction, QuotientOrZero)


@contextmanager
def abstract_operators() -> Iterator[None]:
    """Let the engine know the operators of abstract expressions in the block, and no longer."""
    for operator in _OPERATORS:
        register(operator)
    try:
        yield
    finally:
        for operator in _OPERATORS:
            unregister(operator.name)


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


class _AbstractBuilder:
    def __init__(self, program: MuGraph) -> None:
        self._program = program
        self._dims = kernel_tensors(program)
        self._nodes: list[Node] = []
        #: Operators that only give another name: a view, a sum of one element.
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


_LINK = """
(rule abstract-sum-of-{whole}-is-sums
  (law "sum({first}, sum({rest}, x)) = sum({whole}, x)")
  (<=> (abstract_sum ?x :size {whole}) (abstract_sum (abstract_sum ?x :size {rest}) :size {first})))
"""


def axioms(sizes: Iterable[int], files: Iterable[str] = ()) -> list[Rule]:
    """Return the equalities of Table 2, for sums over so many elements, and those of further files.

    ``abstract_operators`` has to hold where they are read and used.
    """
    chains = {link for size in sizes for link in chain(size)}
    text = "".join(
        _LINK.format(whole=whole, first=first, rest=rest) for whole, first, rest in sorted(chains)
    )
    folder = resource_dir("rules") / "mugraph"
    shipped = [r for name in ("axioms", *files) for r in read_rule_file(folder / f"{name}.rules")]
    return [*shipped, *parse_rules(text, "the sizes of a program")]


def chain(size: int) -> list[tuple[int, int, int]]:
    """Return how a number falls apart, smallest factor first: (12, 2, 6), (6, 2, 3)."""
    links, factor = [], 2
    while factor * factor <= size:
        if size % factor:
            factor += 1
        else:
            links.append((size, factor, size // factor))
            size //= factor
    return links
