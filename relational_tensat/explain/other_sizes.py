"""The steps of an explanation, carried out at other sizes of a model's dynamic dimensions.

The graph at other sizes has the same operators with other attributes and types. Every term of the explained
graphs gets its counterpart there. Those of the original come from the graph that was read at these sizes.
Those of a step come from its rule: its conditions are examined and its attributes computed again. If a step
does not apply, or two values that were one at the explained sizes are two at others, it holds at the
explained sizes only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from relational_tensat.base.errors import RelationalTensatError, UnsoundRuleError
from relational_tensat.egraph.catalogue import Symbol
from relational_tensat.explain.explanation import Explanation
from relational_tensat.explain.laws import Law
from relational_tensat.explain.rewrite import ChangedTerm, RewriteStep, changed_terms
from relational_tensat.rules.instance import Instance, instantiate
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import AttrItems, AttrValue, TensorType, ValueType, tensors_of

#: Attributes that list sizes of the result's dimensions.
_LISTS_OF_SIZES = ("shape", "sizes")


class ShapeSpecificError(Exception):
    """A step holds at the explained sizes, and not at others.

    Attributes:
        place: at which of the other sizes it does not.
        step: its index; -1 where values of the original are equal at the explained sizes only.
        reason: why, one clause.
    """

    def __init__(self, place: int, step: int, reason: str) -> None:
        super().__init__(reason)
        self.place = place
        self.step = step
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Counterpart:
    """A term at other sizes: its operator's attributes there, and its type."""

    attrs: AttrItems
    type: ValueType


class _ConflictError(Exception):
    """A term would be two things at once; the text says which."""


def at_other_sizes(
    explanation: Explanation, graphs: Sequence[Graph]
) -> list[dict[int, Counterpart]]:
    """Carry out all steps at other sizes.

    Args:
        graphs: the original at each of them: the same names and operators as at the explained sizes.

    Returns:
        The counterparts of all terms at each, those of the result included.

    Raises:
        ShapeSpecificError: a step does not hold at one of them.
    """
    replays = [_Replay(explanation) for _ in graphs]
    for place, (replay, graph) in enumerate(zip(replays, graphs, strict=True)):
        try:
            replay.begin(graph)
        except _ConflictError as conflict:
            raise ShapeSpecificError(place, -1, str(conflict)) from None
    for index, rewrite in enumerate(explanation.rewrites):
        changed = changed_terms(explanation.terms, rewrite)
        for place, replay in enumerate(replays):
            try:
                replay.follow(rewrite, changed)
            except (_ConflictError, RelationalTensatError) as error:
                raise ShapeSpecificError(place, index, str(error)) from None
    return [replay.counterparts for replay in replays]


class _Replay:
    def __init__(self, explanation: Explanation) -> None:
        self._explanation = explanation
        self._terms = explanation.terms
        self._signatures = explanation.stored.signatures
        self.counterparts: dict[int, Counterpart] = {}
        #: Rules without what keeps the search to places where they pay: that may be otherwise there.
        self._everywhere: dict[int, Rule] = {}
        #: The sizes of tensors that occur: one size, but two that are equal here may differ there.
        self._sizes: dict[int, set[int]] = {}

    def begin(self, graph: Graph) -> None:
        """Give the terms of the original graph their counterparts."""
        attrs_of = self._original_attrs(graph)
        for term in self._terms.of(self._all_originals()):
            op = self._symbol(term).op
            if op == "input":
                kind = graph.types[str(dict(self._symbol(term).attrs)["name"])]
                assert isinstance(kind, TensorType)
                attrs = tuple({**dict(self._symbol(term).attrs), "shape": kind.shape}.items())
            else:
                attrs = attrs_of.get(term, self._symbol(term).attrs)
            self._apply(term, attrs)

    def follow(self, rewrite: RewriteStep, changed: Sequence[ChangedTerm]) -> None:
        """Apply a step's rule, and put what it builds in place of what it replaces.

        Args:
            changed: the terms above that.
        """
        law = rewrite.law
        values = self._side_terms(law, rewrite.operands, source=True)
        sources = values[law.variables :]
        for term in values:
            self._supply(term)
        in_preorder = sources[::-1]
        roots = [values[root] for root in law.source.roots]
        try:
            instance = instantiate(
                self._everywhere.setdefault(id(law.rule), law.rule.everywhere),
                [(self._symbol(t).op, dict(self.counterparts[t].attrs)) for t in in_preorder],
                tuple(self.counterparts[term].type for term in rewrite.operands),
                tuple(self.counterparts[root].type for root in roots),
            )
        except UnsoundRuleError as error:
            raise _ConflictError(str(error)) from None
        if instance is None:
            raise _ConflictError("its condition does not hold there")
        self._build(law, instance, rewrite.operands)
        self._spread(changed)

    def _build(self, law: Law, instance: Instance, operands: tuple[int, ...]) -> None:
        """Give what the rule builds, or finds where it is read backward, its counterparts."""
        target = self._side_terms(law, operands, source=False)
        forms = [
            (self._symbol(term).op, node[1])
            for term, node in zip(target[law.variables :], law.target.nodes, strict=True)
        ]
        if [(node.op, node.children) for node in instance.nodes] != forms or (
            instance.roots != law.target.roots
        ):
            raise _ConflictError("it builds another graph there")
        for term, node in zip(target[law.variables :], instance.nodes, strict=True):
            self._put(term, Counterpart(node.attrs, node.type))

    def _spread(self, changed: Sequence[ChangedTerm]) -> None:
        """Give what uses a replaced value, directly or not, its counterpart: its attributes stay."""
        counterparts = self.counterparts
        for item in changed:
            known = counterparts[item.old]
            if all(counterparts[a].type == counterparts[b].type for a, b in item.operands):
                self._put(item.new, known)  # as most are: nothing to infer
            else:
                self._apply(item.new, known.attrs)

    def _side_terms(self, law: Law, operands: tuple[int, ...], *, source: bool) -> list[int]:
        """Return the terms of one side of a law: its variables, then its nodes."""
        side = law.source if source else law.target
        values = list(operands)
        for signature, children in side.nodes:
            values.append(self._terms.id_of(signature, [values[child] for child in children]))
        return values

    def _supply(self, term: int) -> None:
        """Give a term that no graph has had so far a counterpart: the same attributes, but for sizes.

        A law read backward may speak of operands that are not there, and holds for any; the built pattern
        is right if the law leads from it to the found one.
        """
        if term in self.counterparts:
            return
        for below in self._terms.of([term]):
            if below not in self.counterparts:
                attrs = self._symbol(below).attrs
                self._apply(below, tuple((name, self._sized(name, v)) for name, v in attrs))

    def _sized(self, name: str, value: AttrValue) -> AttrValue:
        """Return what an attribute that lists sizes may be there."""
        if name not in _LISTS_OF_SIZES or not isinstance(value, tuple):
            return value
        sizes = [self._sizes.get(size, {size}) for size in value if isinstance(size, int)]
        known = all(len(candidates) == 1 for candidates in sizes) and len(sizes) == len(value)
        return tuple(min(candidates) for candidates in sizes) if known else value

    def _apply(self, term: int, attrs: AttrItems) -> None:
        """Give a term its counterpart: an operator with attributes on its operands' counterparts."""
        operator = get_operator(self._symbol(term).op)
        kind = operator.infer(self._operand_types(term), dict(attrs))
        self._put(term, Counterpart(attrs, kind))

    def _operand_types(self, term: int) -> tuple[ValueType, ...]:
        return tuple(self.counterparts[child].type for child in self._terms[term].children)

    def _put(self, term: int, counterpart: Counterpart) -> None:
        if self.counterparts.get(term) is counterpart:
            return
        if term not in self.counterparts:
            here = tensors_of(self._signatures[self._terms[term].signature].type)
            for part, other in zip(here, tensors_of(counterpart.type), strict=False):
                for size, size_there in zip(part.shape, other.shape, strict=False):
                    self._sizes.setdefault(size, set()).add(size_there)
        known = self.counterparts.setdefault(term, counterpart)
        if known != counterpart:
            op = self._symbol(term).op
            raise _ConflictError(
                f"two values of {op} are one at the sizes given, and two at others"
            )

    def _original_attrs(self, graph: Graph) -> dict[int, AttrItems]:
        """Return the attributes of the original's nodes there, by term.

        Raises:
            _ConflictError: nodes that are one term differ there.
        """
        names = self._explanation.names
        attrs_of: dict[int, AttrItems] = {}
        for node in graph.nodes:
            items = tuple(node.attrs.items())
            for name in node.outputs:
                if name not in names:
                    continue  # nothing needs it
                term = names[name]
                if get_operator(node.op).multi_output:
                    (term,) = self._terms[term].children
                if attrs_of.setdefault(term, items) != items:
                    raise _ConflictError(
                        f"{name!r} is computed as another value is, at the sizes given only"
                    )
        return attrs_of

    def _all_originals(self) -> Iterable[int]:
        return {*self._explanation.original, *self._explanation.names.values()}

    def _symbol(self, term: int) -> Symbol:
        return self._signatures[self._terms[term].signature].symbol
