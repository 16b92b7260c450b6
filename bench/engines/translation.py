"""Graphs and rules as egglog programs, rule by rule: nothing is tuned for either engine.

Terms are constructors of one sort, an operator with its number of operands each; attributes are integers
before the operands. Where rules speak of shapes, a function has the shape of each term, packed into an
integer (``shapes``): rules ask for those of their variables, and set those of what they build.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.engines import shapes
from bench.engines.works import K_MULTI, Task
from relational_tensat.base.errors import InputError
from relational_tensat.rules.instance import tensor_vars
from relational_tensat.rules.model import Call, Expr, Literal, Rule, Term, Var
from relational_tensat.tensor import Graph
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import AttrValue, TensorType


@dataclass(frozen=True, slots=True)
class Program:
    """What egglog is given, command by command: it parses one at a time sooner than a text of them all.

    Attributes:
        rules: with the declarations before them.
        graph: what makes its terms.
        schedule: how long the rules run.
    """

    rules: list[str]
    graph: list[str]
    schedule: list[str]


def translate(task: Task) -> Program:
    """Return a task as an egglog program.

    Raises:
        InputError: the graph or a rule has something that is not translated.
    """
    constructors, has_shapes = Constructors(), task.work != "chain"
    graph = graph_commands(task.graph(), constructors, has_shapes=has_shapes)
    rules = [rule_command(r, constructors, has_shapes=has_shapes) for r in task.rules()]
    schedule = "(saturate (run single))"
    if task.work != "chain":
        first = "(run multi) (run single) " * K_MULTI
        schedule = f"{first}(repeat {task.iterations - K_MULTI} (run single))"
    declarations = [*_DECLARATIONS, *constructors.declarations()]
    return Program([*declarations, *rules], graph, [f"(run-schedule {schedule})"])


_DECLARATIONS = (
    "(sort T)",
    "(constructor leaf (i64) T)",
    "(function node (i64) T :no-merge)",
    "(function shape (T) i64 :merge old)",
    "(ruleset single)",
    "(ruleset multi)",
)


class Constructors:
    """The constructors that a program uses, and the integers that stand for attributes."""

    def __init__(self) -> None:
        self._parameters: dict[str, str] = {}
        self._codes: dict[AttrValue, int] = {}

    def declarations(self) -> list[str]:
        """Return their declarations."""
        return [f"(constructor {name} ({types}) T)" for name, types in self._parameters.items()]

    def application(
        self,
        op: str,
        operands: Sequence[str],
        attrs: Mapping[str, Expr],
        value: Callable[[Expr], str],
    ) -> str:
        """Return the term of an operator applied to terms; ``value`` writes an attribute's value."""
        name, declared = f"{op}_{len(operands)}", get_operator(op).attrs
        self._parameters[name] = " ".join(["i64"] * len(declared) + ["T"] * len(operands))
        values = [value(attrs.get(a.name, Literal(a.default))) for a in declared]
        return f"({' '.join([name, *values, *operands])})"

    def code(self, literal: Literal) -> str:
        """Return the integer that stands for an attribute's value; a list of sizes is packed."""
        value = literal.value
        if isinstance(value, int):
            return str(int(value))
        if isinstance(value, tuple) and shapes.fits(value):
            return str(shapes.pack(value))
        return str(self._codes.setdefault(value, -1 - len(self._codes)))


def graph_commands(graph: Graph, constructors: Constructors, *, has_shapes: bool) -> list[str]:
    """Return the commands that make the terms of a graph: a value is ``(node NUMBER)``."""

    def code(value: Expr) -> str:
        assert isinstance(value, Literal)
        return constructors.code(value)

    numbers = {name: i for i, name in enumerate([*graph.inputs, *graph.weights], start=1)}
    commands = [f"(set (node {i}) (leaf {i}))" for i in numbers.values()]
    for node in graph.nodes:
        operands = [f"(node {numbers[name]})" for name in node.inputs]
        attrs = {key: Literal(value) for key, value in node.attrs.items()}
        term = constructors.application(node.op, operands, attrs, code)
        (output,) = node.outputs
        numbers[output] = len(numbers) + 1
        commands.append(f"(set (node {numbers[output]}) {term})")
    for name, number in numbers.items() if has_shapes else ():
        kind = graph.types[name]
        if isinstance(kind, TensorType):
            commands.append(f"(set (shape (node {number})) {shapes.pack(kind.shape)})")
    return commands


def rule_command(rule: Rule, constructors: Constructors, *, has_shapes: bool) -> str:
    """Return the command that declares a rule."""
    return _Rule(rule, constructors, has_shapes=has_shapes).command()


class _Rule:
    """A rule while it is translated: the facts and actions so far."""

    def __init__(self, rule: Rule, constructors: Constructors, *, has_shapes: bool) -> None:
        self._rule = rule
        self._constructors = constructors
        self._has_shapes = has_shapes
        self._facts: dict[str, None] = {}
        self._actions: list[str] = []
        #: What targets have: the name of each node, and that of its shape.
        self._built: dict[Term, tuple[str, str]] = {}
        self._shaped: set[str] = set()
        # The rank of tensors whose axes are named: all of one rank in each of TASO's rules.
        is_of_images = "op='conv'" in repr(rule) or "Literal(value=4)" in repr(rule)
        self._rank = 4 if is_of_images else 2

    def command(self) -> str:
        rule = self._rule
        sources = [f"(= e{i} {self._source(source)})" for i, source in enumerate(rule.sources)]
        if rule.is_multi:
            sources.append("(!= e0 e1)")
        if rule.symmetric:
            sources.append("(= e0 (ordering-min e0 e1))")
        for condition in (*rule.conditions, *rule.worth):
            self._add_condition(condition)
        roots = [self._build(target)[0] for target in rule.targets]
        unions = [f"(union e{i} {root})" for i, root in enumerate(roots)]
        variables = [name for name in tensor_vars(rule) if name in self._shaped]
        facts = [*sources, *(f"(= s_{v} (shape {v}))" for v in variables), *self._facts]
        ruleset = "multi" if rule.is_multi else "single"
        return (
            f"(rule ({' '.join(facts)}) ({' '.join([*self._actions, *unions])})"
            f' :ruleset {ruleset} :name "{rule.name}")'
        )

    def _source(self, term: Term) -> str:
        if isinstance(term, Var):
            return term.name
        operands = [self._source(child) for child in term.children]
        return self._constructors.application(term.op, operands, dict(term.attrs), self._value)

    def _build(self, term: Term) -> tuple[str, str]:
        """Build a node of a target, if it is none yet; return its name and that of its shape."""
        if isinstance(term, Var):
            return term.name, self._shape(term)
        if term not in self._built:
            children = [self._build(child) for child in term.children]
            name, attrs = f"t{len(self._built)}", dict(term.attrs)
            operands = [operand for operand, _ in children]
            node = self._constructors.application(term.op, operands, attrs, self._value)
            self._actions.append(f"(let {name} {node})")
            shape = ""
            if self._has_shapes and term.op not in ("split", "part"):
                of_operands = [of_operand for _, of_operand in children]
                facts, result = shapes.result_shape(term.op, of_operands, attrs, self._rank)
                shape = f"s_{name}"
                self._facts.update(dict.fromkeys([*facts, f"(= {shape} {result})"]))
                self._actions.append(f"(set (shape {name}) {shape})")
            self._built[term] = name, shape
        return self._built[term]

    def _shape(self, tensor: Expr) -> str:
        """Return the name of a variable's shape."""
        assert isinstance(tensor, Var)
        if not self._has_shapes:
            return ""
        self._shaped.add(tensor.name)
        return f"s_{tensor.name}"

    def _add_condition(self, condition: Expr) -> None:
        assert isinstance(condition, Call) and condition.function == "="
        left, right = condition.args
        if isinstance(right, Literal):  # of a rank, or of the higher of two
            assert isinstance(right.value, int)
            facts = shapes.has_rank(self._value(left), right.value)
        else:
            facts = [f"(= {self._value(left)} {self._value(right)})"]
        self._facts.update(dict.fromkeys(facts))

    def _value(self, expr: Expr) -> str:
        """Return an attribute's value, or a part of a condition, as egglog writes it."""
        match expr:
            case Literal():
                return self._constructors.code(expr)
            case Call("rank", (tensor,)):
                return self._shape(tensor)
            case Call("batch", (tensor,)):
                return shapes.batch(self._shape(tensor))
            case Call("dim", (tensor, Literal(int(index)))):
                return shapes.dim(self._shape(tensor), index, self._rank)
            case Call("list", (first, second)):
                return f"(+ (* {self._value(first)} {shapes.BASE}) {self._value(second)})"
            # Of batches: where they are not equal, another condition of each of these rules fails.
            case Call("max" | "broadcast", (first, second)):
                return f"(max {self._value(first)} {self._value(second)})"
            case Call("groups", (x, w)):
                return self._groups(self._shape(x), self._shape(w))
        raise InputError(f"{expr} in {self._rule.name}: not translated")

    def _groups(self, x: str, w: str) -> str:
        """Return the groups of a convolution that are merged two by two, which must be possible."""
        channels, group, filters = shapes.dim(x, 1, 4), shapes.dim(w, 1, 4), shapes.dim(w, 0, 4)
        groups = f"(/ {channels} {group})"
        wholes = ((channels, group), (groups, "2"), (filters, groups))
        self._facts.update({f"(= 0 (% {whole} {part}))": None for whole, part in wholes})
        return groups
