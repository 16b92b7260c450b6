"""Constants as rules ask of them: some are extreme, some are known before inference.

Laws of the reals are not applied to extreme constants. ``(x + 1.5·2^23) - 1.5·2^23`` rounds x,
``x·300·300`` is infinite in float16, and a batch norm with the mean 10^6 loses half of its digits when it
moves into a convolution. Rules that round are sound for moderate operands (see ``FloatFormat.moderate``).
Values computed at run time count as moderate, and so do weights whose data are not known. Constants that
are known are checked: each by itself, and beside what it meets (``conditions``).

Some rules ask for operands that are known before inference, ``(worth (known ?x))``. A factor per column of
a product goes into its matrix for nothing where both are weights. Elsewhere it makes a matrix that is
computed at each inference: a vector's product becomes a matrix's. No type tells the one from the other, so
configurations do not; each match is looked at, as the e-graph is then.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.lazy import once_per_object
from relational_tensat.egraph.egraph import EGraph, classes_of_weights
from relational_tensat.egraph.enode_rows import Ints, single_number
from relational_tensat.explore.compile.compiled_rules import CompiledRules, is_one_of
from relational_tensat.rules.instance import tensor_vars
from relational_tensat.rules.model import Literal, Rule, Term, Var, nodes_of
from relational_tensat.tensor import AttrValue, tensors_of
from relational_tensat.tensor.floats import is_extreme
from relational_tensat.tensor.graph import Graph
from relational_tensat.tensor.operators import get_operator, operators
from relational_tensat.tensor.operators.traits import Use

Mask: TypeAlias = NDArray[np.bool_]

_COMMUTATIVE = ("add", "mul")


class Extremes:
    """Keeps the table ``extreme`` up to date, and tests which applications it rules out.

    Without an extreme constant no query changes.
    """

    def __init__(self, egraph: EGraph, compiled: CompiledRules) -> None:
        self._egraph = egraph
        self._compiled = compiled
        harmful = _harmful(egraph.graph)
        self._weights = harmful | frozenset(_extreme_weights(egraph.graph))
        self._numbers = frozenset(_numbers(egraph.graph, harmful))
        self._keeping = {name for name, operator in operators().items() if operator.keeps_size}
        self._seen = 0
        self._signatures: list[int] = []
        #: Of rules that take extreme elements for some variables, where the others are bound.
        self._slots: dict[int, tuple[int, ...]] = {}

    def allow(self, variables_of: Mapping[str, Collection[str]]) -> None:
        """Let rules, by name, take extreme elements for some of their variables."""
        for rule in self._compiled.rules:
            allowed = variables_of.get(rule.rule.name, ())
            if allowed:
                slots = zip(tensor_vars(rule.rule), rule.slots, strict=True)
                self._slots[rule.id] = tuple(n for name, n in slots if name not in allowed)

    @property
    def is_active(self) -> bool:
        """Whether there is an extreme constant."""
        return bool(self._signatures) and bool(self._guarded)

    @cached_property
    def _guarded(self) -> list[int]:
        return [rule.id for rule in self._compiled.rules if rounds_otherwise(rule.rule)]

    def refresh(self) -> None:
        """Find the extreme classes again."""
        catalogue = self._egraph.catalogue
        count = len(catalogue.signatures)
        self._signatures += [n for n in range(self._seen + 1, count + 1) if self._is_extreme(n)]
        self._seen = count
        if self.is_active:
            self._egraph.database.run(
                "match/extreme",
                signatures=self._signatures,
                keeping=catalogue.by_signature(lambda symbol: symbol.op in self._keeping),
                hidden=self._egraph.is_universe,
            )

    def excluded_mask(self, rules: Ints, leaves: Sequence[Ints]) -> Mask | None:
        """Return which applications are left out, or None. See ``refresh``.

        Args:
            rules: by application, its rule's id.
            leaves: the classes that it binds, a column each.
        """
        if not self.is_active:
            return None
        rows = self._egraph.database.execute("-- extreme classes\nSELECT classes FROM extreme")
        extreme = np.array(sorted(rows[0][0] or ()), np.int32)
        out = np.zeros(len(rules), np.bool_)
        for number, column in enumerate(leaves if len(extreme) else ()):
            asking = [n for n in self._guarded if number in self._slots.get(n, (number,))]
            out |= np.isin(column, extreme) & np.isin(rules, np.array(asking, np.int32))
        return out

    def ruled_out(self, rule: str, leaves: Sequence[str], rules: Set[int]) -> tuple[str, str]:
        """Return the condition on applications that are left out, and the table that it reads.

        Both are text, or "".

        Args:
            rule: the column of the rule's id.
            leaves: the columns of the classes that a match binds.
            rules: those that take part.
        """
        guarded = [n for n in self._guarded if n in rules] if self.is_active else []
        if not guarded:
            return "", ""
        plain = [n for n in guarded if n not in self._slots]
        ruled_out = [f"{is_one_of(rule, plain)} AND {_is_bound(leaves)}"] if plain else []
        for number in (n for n in guarded if n in self._slots):
            asking = [leaves[slot] for slot in self._slots[number]]
            ruled_out.append(f"{rule} = {number} AND {_is_bound(asking)}")
        return "extreme", " OR ".join(ruled_out)

    def _is_extreme(self, signature: int) -> bool:
        symbol = self._egraph.catalogue.symbol_of(signature)
        attrs = dict(symbol.attrs)
        if symbol.op == "fill":
            number = attrs["value"], str(attrs["dtype"])
            return number in self._numbers or is_extreme(*number)
        return symbol.op == "weight" and attrs["name"] in self._weights


def _is_bound(leaves: Sequence[str]) -> str:
    return f"list_has_any([{', '.join(leaves)}]::INTEGER[], extreme.classes)"


@once_per_object
def rounds_otherwise(rule: Rule) -> bool:
    """Whether the two sides of a rule may round differently.

    Not where both apply the same operators to the same elements, once fused operators are taken apart and
    operators that only move elements are left out: ``add(matmul(a, b), v)`` and ``matmul(a, b, v)`` round
        alike.
    """
    return any(
        _bare(source) != _bare(target)
        for source, target in zip(rule.sources, rule.targets, strict=True)
    ) and any(
        not get_operator(term.op).is_exact
        for root in (*rule.sources, *rule.targets)
        for term in nodes_of(root)
    )


def _bare(term: Term) -> str:
    """Return what a term computes of each element, as text."""
    if isinstance(term, Var):
        return f"?{term.name}"
    operator, attrs = get_operator(term.op), dict(term.attrs)
    children = [_bare(child) for child in term.children]
    if operator.kernel != "compute" and children and term.op not in ("concat", "noop"):
        return children[0]
    act = attrs.pop("act", None)
    has_bias = Use.ADDED in operator.uses and len(children) == 3
    own = children[:2] if has_bias else children
    if term.op in _COMMUTATIVE:
        own.sort()
    text = f"{term.op}({', '.join([*own, *map(str, sorted(attrs.items()))])})"
    if has_bias:
        text = f"add({', '.join(sorted((text, children[2])))})"
    return text if act in (None, Literal("none")) else f"{_name(act)}({text})"


def _name(act: object) -> str:
    return str(act.value) if isinstance(act, Literal) else str(act)


def _harmful(graph: Graph) -> frozenset[str]:
    """Return what ``ill_conditioned`` does: nothing where no constant is known, which needs no analysis."""
    has_known = any(weight.data is not None for weight in graph.weights.values())
    if not has_known and all(node.op != "fill" for node in graph.nodes):
        return frozenset()
    from relational_tensat.explore.match.conditions import ill_conditioned  # brings verification

    return ill_conditioned(graph)


def _extreme_weights(graph: Graph) -> Iterator[str]:
    """Yield the weights whose data are known and extreme; a variance, by its root."""
    rooted = _rooted(graph)
    for name, weight in graph.weights.items():
        if weight.data is None or not weight.type.is_float or weight.type.size == 0:
            continue
        data: Any = weight.data
        largest = max(float(data.max()), -float(data.min()))
        size = math.sqrt(largest) if name in rooted and 0 <= largest < math.inf else largest
        if is_extreme(size, weight.type.dtype):
            yield name


def _numbers(graph: Graph, names: Set[str]) -> Iterator[tuple[AttrValue, str]]:
    """Yield those constants of these names that are single numbers, with their types."""
    for node in graph.nodes:
        if node.op == "fill" and node.outputs[0] in names:
            (kind,) = tensors_of(graph.types[node.outputs[0]])
            yield node.attrs["value"], kind.dtype
    for name in names & graph.weights.keys():
        number = single_number(graph.weights[name])
        if number is not None:
            yield number, graph.weights[name].type.dtype


def _rooted(graph: Graph) -> set[str]:
    """Return the weights that nothing takes but operators that take their root first."""
    rooted: set[str] = set()
    plain: set[str] = set(graph.outputs)
    for node in graph.nodes:
        places = get_operator(node.op).rooted_operands
        for index, name in enumerate(node.inputs):
            (rooted if index in places else plain).add(name)
    return rooted - plain


class KnownOperands:
    """Tests which applications bind something to be computed where the rule asks for what is known.

    Where no rule asks, no query changes.
    """

    def __init__(self, egraph: EGraph, compiled: CompiledRules) -> None:
        self._egraph = egraph
        #: By rule, the leaves that have to be known.
        self._leaves: dict[int, tuple[int, ...]] = {}
        for rule in compiled.rules:
            names = tensor_vars(rule.rule) if rule.rule.known else ()
            if names:
                places = (rule.slots[names.index(name)] for name in rule.rule.known)
                self._leaves[rule.id] = tuple(places)

    def excluded_mask(self, rules: Ints, leaves: Sequence[Ints]) -> Mask | None:
        """Return which applications are left out; None where no rule asks.

        Args:
            rules: by application, its rule's id.
            leaves: the classes that it binds, a column each.
        """
        asking = np.isin(rules, np.array(sorted(self._leaves), np.int32))
        if not asking.any():
            return None
        is_known = self._is_known()
        for rule in np.unique(rules[asking]).tolist():
            of_rule = np.flatnonzero(rules == rule)
            for leaf in self._leaves[rule]:
                of_rule = of_rule[is_known[leaves[leaf][of_rule]]]
            asking[of_rule] = False
        return asking

    def refresh(self, rules: Set[int]) -> None:
        """Find again what is known, if one of these rules asks."""
        if not self._leaves.keys().isdisjoint(rules):
            self._egraph.database.run("match/known", is_known=self._is_known()[1:].tolist())

    def ruled_out(self, rule: str, leaves: Sequence[str], rules: Set[int]) -> tuple[str, str]:
        """Return the condition on applications that are left out, and the table that it reads.

        Both are text; "" where no rule asks. See ``refresh``.

        Args:
            rule: the column of the rule's id.
            leaves: the columns of the classes that a match binds.
            rules: those that take part.
        """
        asking: dict[int, list[int]] = {}
        for rule_id in sorted(self._leaves.keys() & rules):
            for leaf in self._leaves[rule_id]:
                asking.setdefault(leaf, []).append(rule_id)
        if not asking:
            return "", ""
        unknown = [
            f"({is_one_of(rule, rule_ids)} AND NOT known_class.is_known[{leaves[leaf]}])"
            for leaf, rule_ids in sorted(asking.items())
        ]
        return "known_class", " OR ".join(unknown)

    def _is_known(self) -> Mask:
        """Return by class whether it can be had from weights only."""
        is_known = np.zeros(self._egraph.next_id, np.bool_)
        is_known[classes_of_weights(self._egraph, hidden=self._egraph.is_universe)] = True
        return is_known
