"""Deriving: one e-graph of pairs of terms, grown by the laws until those of each pair are one class.

The terms are one tensor graph, over the same inputs: so what they have in common is there once, and every
law is matched once for all. They are both sides of a rule on several configurations, or any pairs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TypeAlias

from relational_tensat.base.errors import UnsoundRuleError, UsageError
from relational_tensat.base.records import record
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore import Exploration, ExplorationOptions, Observer, explore
from relational_tensat.explore.derivation.configurations import generic_configurations
from relational_tensat.rules.instance import tensor_vars
from relational_tensat.rules.model import Rule, Term, Var
from relational_tensat.rules.soundness.draws import RuleConfiguration
from relational_tensat.tensor.graph import Graph, Node, build_graph
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.attributes import int_of
from relational_tensat.tensor.operators.samples import SeededChoices
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


#: The reason that kept a side from meeting the other, by the stop reason of the exploration.
_WITHOUT = {
    "saturated": "the laws have nothing left to add",
    "iterations": "the iteration limit is reached",
    "nodes": "the e-node limit is reached",
    "time": "the time limit is reached",
    "memory": "the memory limit is reached",
}


@record
class DerivationEffort:
    """How hard a rule is tried.

    Attributes:
        configurations: on at most so many sets of operands.
        iterations, multi_iterations: of an exploration; the latter each time that the laws of one
            source have nothing left to add.
        e_nodes: of an e-graph.
        seconds: for a rule, wall time.
        seed: of the operands that are drawn.
    """

    configurations: int = 4
    iterations: int = 12
    multi_iterations: int = 2
    e_nodes: int = 10_000
    seconds: float = 30.0
    seed: int = 0


@record
class Derivation:
    """Whether the laws prove a rule, and what it took.

    Attributes:
        rule, law: of the rule.
        derived: on every configuration, each pair of source and target became one class.
        configurations: on how many sets of operands it was tried.
        iterations: of the longest exploration.
        e_nodes: of the largest e-graph.
        seconds: wall time.
        reason: why it is not derived; empty if it is.
        where: the first operands on which it is not derived, e.g. ``a float32[2,3], b float32[3]``.
    """

    rule: str
    law: str
    derived: bool
    configurations: int
    iterations: int
    e_nodes: int
    seconds: float
    reason: str = ""
    where: str = ""


def derive_rules(
    rules: Sequence[Rule], laws: Sequence[Rule], effort: DerivationEffort | None = None
) -> Iterator[Derivation]:
    """Yield for each rule whether the laws prove it.

    Args:
        rules: those marked as unsound are not derived.
        laws: taken wherever they hold, whether or not rewriting is worth it there.
    """
    everywhere = [law.everywhere for law in laws]
    for rule in rules:
        attempt = _Attempt(rule, everywhere, effort or DerivationEffort())
        yield attempt.failed("its file marks it as unsound") if rule.unsound else attempt.result()


def derive_rule(
    rule: Rule, laws: Sequence[Rule], effort: DerivationEffort | None = None
) -> Derivation:
    """Return whether laws prove a rule on operands that satisfy its sources and conditions.

    All configurations share an e-graph at first. Those that are not proven when a limit is reached
    get one of their own.

    Args:
        laws: as they are, with their ``worth``.

    Raises:
        KeyboardInterrupt: the exploration was interrupted.
    """
    return _Attempt(rule, laws, effort or DerivationEffort()).result()


class _Attempt:
    def __init__(self, rule: Rule, laws: Sequence[Rule], effort: DerivationEffort) -> None:
        self._rule = rule
        self._laws = laws
        self._effort = effort
        self._started = time.perf_counter()
        self._configurations: list[RuleConfiguration] = []
        self._iterations = 0
        self._e_nodes = 0

    def result(self) -> Derivation:
        rule, effort = self._rule, self._effort
        choices = SeededChoices(f"{effort.seed} {rule.name}")
        try:
            configurations = generic_configurations(rule.everywhere, effort.configurations, choices)
        except UnsoundRuleError as error:
            return self.failed(f"wrong: {error}")
        if not configurations:
            return self.failed("no operands were found that satisfy its sources and conditions")
        self._configurations = configurations
        failures, stop_reason = self._prove(configurations)
        if failures and stop_reason != "saturated" and len(configurations) > 1:
            for configuration in failures:
                unproven, stop_reason = self._prove([configuration])
                if unproven:
                    return self.failed(_WITHOUT[stop_reason], configuration)
        elif failures:
            return self.failed(_WITHOUT[stop_reason], failures[0])
        return self._outcome()

    def _prove(
        self, configurations: Sequence[RuleConfiguration]
    ) -> tuple[list[RuleConfiguration], str]:
        """Explore both sides; return the configurations that are not proven, and what ended it."""
        sides = both_sides(self._rule.everywhere, configurations)
        left_s = self._effort.seconds - (time.perf_counter() - self._started)
        with closing(EGraph.create(sides.graph)) as egraph:
            stop_reason = "goal"
            if unproven(sides, egraph):
                exploration = explored(sides, egraph, self._laws, self._effort, left_s)
                self._iterations = max(self._iterations, exploration.iterations)
                stop_reason = exploration.stop_reason
            self._e_nodes = max(self._e_nodes, egraph.e_nodes)
            return [configurations[i] for i in unproven(sides, egraph)], stop_reason

    def failed(self, reason: str, where: RuleConfiguration | None = None) -> Derivation:
        names = tensor_vars(self._rule)
        operands = () if where is None else zip(names, where.var_types, strict=True)
        text = ", ".join(f"{name} {kind}" for name, kind in operands)
        return self._outcome(reason, text)

    def _outcome(self, reason: str = "", where: str = "") -> Derivation:
        return Derivation(
            rule=self._rule.name,
            law=self._rule.law,
            derived=not reason,
            configurations=len(self._configurations),
            iterations=self._iterations,
            e_nodes=self._e_nodes,
            seconds=time.perf_counter() - self._started,
            reason=reason,
            where=where,
        )


def explored(
    sides: SideGraphs,
    egraph: EGraph,
    laws: Sequence[Rule],
    effort: DerivationEffort,
    left_s: float,
) -> Exploration:
    """Explore by laws until all is proven.

    Raises:
        KeyboardInterrupt: the exploration was interrupted.
    """
    options = ExplorationOptions(
        iterations=effort.iterations,
        multi_iterations=effort.multi_iterations,
        multi_schedule="saturated",
        node_limit=effort.e_nodes,
        time_limit_s=max(left_s, 0.0),
    )
    observer = Observer(until=lambda current: not unproven(sides, current))
    exploration = explore(egraph, laws, options, observer=observer)
    if exploration.stop_reason == "interrupted":
        raise KeyboardInterrupt
    return exploration


def unproven(sides: SideGraphs, egraph: EGraph) -> list[int]:
    """Return the indices of the cases of which some pair is not one class."""
    class_of = dict(egraph.database.run("egraph/output_classes"))
    return [
        index
        for index, pairs in enumerate(sides.pairs)
        if any(class_of[left] != class_of[right] for left, right in pairs)
    ]
