"""Graphs in which the sources of given rules occur, over inputs that rules share."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from relational_tensat.base.errors import UnsoundRuleError
from relational_tensat.rules.instance import source_nodes, tensor_vars
from relational_tensat.rules.model import Rule, Term, Var
from relational_tensat.tensor import Attrs, Graph, Node, TensorType, build_graph
from tests.strategies import RuleConfiguration, draw_configuration

_ATTEMPTS = 60
_INPUTS_PER_TYPE = 2


class _Sources:
    """Collects the nodes of the sources that were drawn."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.inputs: dict[str, TensorType] = {}
        self.nodes: list[Node] = []

    def add(self, rule: Rule, configuration: RuleConfiguration) -> None:
        """Add the sources of a rule; equal variables are one input."""
        values = {
            name: self._input(kind)
            for name, kind in zip(tensor_vars(rule), configuration.var_types, strict=True)
        }
        symbols = dict(zip(map(id, source_nodes(rule)), configuration.symbols, strict=True))
        for source in rule.sources:
            self._value(source, values, symbols)

    def _input(self, kind: TensorType) -> str:
        name = f"{kind}#{self.random.randrange(_INPUTS_PER_TYPE)}"
        self.inputs[name] = kind
        return name

    def _value(
        self, term: Term, values: dict[str, str], symbols: dict[int, tuple[str, Attrs]]
    ) -> tuple[str, ...]:
        """Return the names of a term's tensors."""
        if isinstance(term, Var):
            return (values[term.name],)
        operands = [self._value(child, values, symbols) for child in term.children]
        op, attrs = symbols[id(term)]
        if op == "part":
            return (operands[0][int(attrs["index"])],)  # type: ignore[arg-type]
        inputs = tuple(name for operand in operands for name in operand)
        count = len(attrs["sizes"]) if op == "split" else 1  # type: ignore[arg-type]
        outputs = tuple(f"v{len(self.nodes)}_{index}" for index in range(count))
        self.nodes.append(Node(op, inputs, outputs, attrs))
        return outputs


def source_graph(rules: Sequence[Rule], random: Random) -> Graph:
    """Return a graph with the sources of the rules in it, as far as operands for them are found."""
    sources = _Sources(random)
    for rule in rules:
        for _ in range(_ATTEMPTS):
            configuration = draw_configuration(rule, random)
            if configuration is not None and _applies(rule, configuration):
                sources.add(rule, configuration)
                break
    operands = {name for node in sources.nodes for name in node.inputs}
    outputs = [name for node in sources.nodes for name in node.outputs if name not in operands]
    return build_graph("sources", sources.inputs, {}, sources.nodes, outputs)


def _applies(rule: Rule, configuration: RuleConfiguration) -> bool:
    try:
        return configuration.instantiate(rule) is not None
    except UnsoundRuleError:
        return False
