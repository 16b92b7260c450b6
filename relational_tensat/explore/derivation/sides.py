"""Both sides of a rule on some configurations, as one tensor graph over the same inputs.

Terms have in common what they share, so a rule or law that is matched on it is matched once for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from relational_tensat.base.errors import UsageError
from relational_tensat.base.records import record
from relational_tensat.rules.instance import tensor_vars
from relational_tensat.rules.model import Rule, Term, Var
from relational_tensat.rules.soundness.draws import RuleConfiguration
from relational_tensat.tensor.graph import Graph, Node, build_graph
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.attributes import int_of
from relational_tensat.tensor.types import Attrs, TensorType, ValueType, tensors_of

#: The names of a value's tensors (one, or the parts of a tuple), and its type.
Value: TypeAlias = tuple[tuple[str, ...], ValueType]


@record
class SideGraphs:
    """Terms that are claimed to be equal, in several cases: configurations of a rule, or pairs of terms.

    Attributes:
        graph: its outputs are claimed to be equal; every configuration has inputs of its own.
        pairs: per case, the names of two outputs for each tensor that is claimed to be two terms.
    """

    graph: Graph
    pairs: tuple[tuple[tuple[str, str], ...], ...]


def both_sides(rule: Rule, configurations: Sequence[RuleConfiguration]) -> SideGraphs:
    """Return the graph of a rule's sources and targets.

    Raises:
        UsageError: the rule does not apply to a configuration.
        UnsoundRuleError: there it changes the type of a result.
    """
    inputs: dict[str, TensorType] = {}
    nodes: list[Node] = []
    pairs = []
    for index, configuration in enumerate(configurations):
        builder = _SideBuilder(rule, configuration, f"{index}.")
        inputs.update(builder.inputs)
        pairs.append(builder.build())
        nodes += builder.nodes
    return as_graph(rule.name, inputs, nodes, pairs)


def as_graph(
    name: str,
    inputs: Mapping[str, TensorType],
    nodes: Sequence[Node],
    pairs: Sequence[tuple[tuple[str, str], ...]],
) -> SideGraphs:
    """Return nodes over inputs as a graph, with what is claimed to be equal as its outputs."""
    outputs = dict.fromkeys(name for of_case in pairs for pair in of_case for name in pair)
    return SideGraphs(build_graph(name, inputs, {}, nodes, outputs, where=name), tuple(pairs))


class NodeBuilder:
    """Builds nodes; the names of their values start with ``prefix``."""

    def __init__(self, prefix: str) -> None:
        self.nodes: list[Node] = []
        self._prefix = prefix

    def apply(self, op: str, attrs: Attrs, operands: Sequence[Value]) -> Value:
        """Return an operator's value. A tuple is known by its tensors: a part of it is one of them."""
        operator = get_operator(op)
        kind = operator.infer(tuple(kind for _, kind in operands), attrs)
        operand_names = tuple(name for names, _ in operands for name in names)
        if op == "part":
            return (operand_names[int_of(attrs, "index")],), kind
        if op == "noop":
            return operand_names, kind
        name = f"{self._prefix}{len(self.nodes)}"
        names: tuple[str, ...] = (name,)
        if operator.multi_output:
            names = tuple(f"{name}.{part}" for part in range(len(tensors_of(kind))))
        self.nodes.append(Node(op, operand_names, names, attrs, name))
        return names, kind


class _SideBuilder(NodeBuilder):
    """Builds the nodes of one configuration."""

    def __init__(self, rule: Rule, configuration: RuleConfiguration, prefix: str) -> None:
        super().__init__(prefix)
        self._rule = rule
        self._configuration = configuration
        types = zip(tensor_vars(rule), configuration.var_types, strict=True)
        self._variables: dict[str, Value] = {
            name: ((f"{prefix}{name}",), kind) for name, kind in types
        }

    @property
    def inputs(self) -> dict[str, TensorType]:
        """The rule's variables, as inputs of the graph."""
        names = (names[0] for names, _ in self._variables.values())
        return dict(zip(names, self._configuration.var_types, strict=True))

    def build(self) -> tuple[tuple[str, str], ...]:
        """Build both sides; return the pairs of tensors that should be equal."""
        instance = self._configuration.instantiate(self._rule)
        if instance is None:
            raise UsageError(
                f"the rule {self._rule.name!r} does not apply to a configuration of it"
            )
        symbols = iter(self._configuration.symbols)
        sources = [self._source(source, symbols) for source in self._rule.sources]
        values = list(self._variables.values())
        for node in instance.nodes:
            operands = [values[child] for child in node.children]
            values.append(self.apply(node.op, dict(node.attrs), operands))
        targets = [values[root] for root in instance.roots]
        return tuple(
            pair
            for (left, _), (right, _) in zip(sources, targets, strict=True)
            for pair in zip(left, right, strict=True)
        )

    def _source(self, term: Term, symbols: Iterator[tuple[str, Attrs]]) -> Value:
        if isinstance(term, Var):
            return self._variables[term.name]
        op, attrs = next(symbols)
        return self.apply(op, attrs, [self._source(child, symbols) for child in term.children])
