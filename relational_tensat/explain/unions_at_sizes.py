"""All unions of a run, carried out at other sizes of a model's dynamic dimensions, each once.

Forms of the proof graph get counterparts there. Those of the original come from the graph that was read at
these sizes. Those of an application come from the rule, judged there again. A union holds there if its rule
does, or, for one by congruence, if the operands are one there. So it is known of each e-node at once
whether it holds at all sizes, without steps from graph to graph. A union costs no more in a large model
than in a small one. Equal ones are judged once. ``other_sizes`` is the slow way, by steps.

The chosen graph follows from them, or the e-nodes that do not hold at other sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relational_tensat.base import duckdb
from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.base.files import sql
from relational_tensat.egraph.catalogue import Symbol
from relational_tensat.egraph.chosen_graph import ChosenNode, build_chosen
from relational_tensat.explain.egraph_tables import StoredEGraph
from relational_tensat.explain.laws import Congruence, Edge
from relational_tensat.explain.other_sizes import Counterpart
from relational_tensat.explain.proof import ProofGraph
from relational_tensat.rules.instance import Instance, instantiate
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph, TensorType
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import AttrItems, ValueType

#: Counterparts of one thing at each of the other sizes.
_Attrs = tuple[AttrItems, ...]
_Types = tuple[ValueType, ...]


class UnlikeValuesError(Exception):
    """Values of the original are one at the sizes given, and two at others; the text names one."""


@dataclass(frozen=True, slots=True)
class SizeRefusal:
    """Why an e-node does not hold at all sizes.

    Attributes:
        place: at which of the other sizes it does not.
        rule: by which rule it came about; "" where none is known.
        reason: one clause.
    """

    place: int
    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Held:
    """A form's counterparts at the other sizes."""

    attrs: _Attrs
    types: _Types


class UnionsAtSizes:
    """The unions of a run at other sizes.

    Args:
        graphs: the original at each of them: the same names and operators as at the sizes given.

    Raises:
        UnlikeValuesError: values of the original are one at the sizes given only.
        RelationalTensatError: an operator of the original does not take its operands there.
    """

    def __init__(self, proof: ProofGraph, graphs: Sequence[Graph]) -> None:
        self._proof = proof
        self._signatures = proof.stored.signatures
        self._graphs = graphs
        self._held: dict[int, _Held] = {}
        self._refusals: dict[int, SizeRefusal] = {}
        self._refused: dict[int, tuple[Edge, SizeRefusal]] = {}
        self._parent: dict[int, int] = {}
        #: Equal counterparts are one object, so that equal unions are found by identity.
        self._interned: dict[tuple[str, _Types], _Held] = {}
        self._inferred: dict[tuple[str, str, tuple[_Types, ...]], _Held] = {}
        self._judged: dict[tuple[int, ...], list[_Held] | SizeRefusal] = {}
        self._everywhere: dict[int, Rule] = {}
        self._begin()
        waiting, before = list(proof.unions), -1
        while len(waiting) != before:  # one that does not hold may be what another one needs
            before = len(waiting)
            waiting = [union for union in waiting if not self._holds(union)]

    def holding(
        self, chosen: Mapping[int, int], outputs: Sequence[int]
    ) -> tuple[dict[int, int], dict[int, SizeRefusal]]:
        """Return a form that holds everywhere of each chosen e-node, by class, and refusals by e-node.

        Args:
            chosen: an e-node per class.
            outputs: forms that the original returns.
        """
        proof, forms, refused = self._proof, dict[int, int](), dict[int, SizeRefusal]()
        pending = list(outputs)
        while pending:
            wanted = pending.pop()
            owner = proof.owner(wanted)
            known = forms.get(owner)
            if known is not None:
                if not self.are_one(known, wanted):
                    refused.setdefault(chosen[owner], self._two_values(chosen[owner]))
                continue
            enode = chosen[owner]
            form = self._form_like(enode, wanted)
            if form is None:
                refused[enode] = self._refusal(enode)
                forms[owner] = wanted
                below = proof.operands(proof.first_form(enode)) if proof.forms_of(enode) else ()
                pending += [operand for operand in below if operand in self._held]
                continue
            forms[owner] = form
            pending += proof.operands(form)
        return forms, refused

    def rule_at_fault(self, owner: int) -> SizeRefusal | None:
        """Return by which rule values of the original in a class are one at the sizes given only."""
        for edge, refusal in self._refused.values():
            ends = edge.start, edge.end
            are_known = all(form in self._held for form in ends)
            if self._proof.owner(edge.start) == owner and are_known and not self.are_one(*ends):
                return refusal
        return None

    def counterpart(self, form: int, place: int) -> Counterpart:
        """Return what a form that holds is at one of the other sizes."""
        held = self._held[form]
        return Counterpart(held.attrs[place], held.types[place])

    def are_one(self, form: int, other: int) -> bool:
        """Whether two forms have the same value at all sizes."""
        return form == other or self._root(form) == self._root(other)

    def never_holding(self) -> set[int]:
        """Return the e-nodes none of whose forms has a counterpart at all sizes."""
        proof = self._proof
        return {*map(proof.enode, proof.nodes)} - {*map(proof.enode, self._held)}

    def _form_like(self, enode: int, wanted: int) -> int | None:
        """Return a form of an e-node that has the same value as another one at all sizes."""
        for form in self._proof.forms_of(enode):
            if form in self._held and self.are_one(form, wanted):
                return form
        return None

    def _refusal(self, enode: int) -> SizeRefusal:
        for form in self._proof.forms_of(enode):
            if form in self._refusals:
                return self._refusals[form]
        return self._two_values(enode)

    def _two_values(self, enode: int) -> SizeRefusal:
        node = self._proof.stored.nodes[enode]
        op = self._signatures[node.signature].symbol.op
        rule = self._proof.stored.rules.get(node.rule, "")
        return SizeRefusal(0, rule, f"two values of {op} are one at the sizes given only")

    def _begin(self) -> None:
        """Give the forms of the original their counterparts."""
        attrs_of = self._original_attrs()
        for form, _ in self._proof.original.values():
            if form in self._held:
                continue
            symbol = self._symbol(form)
            if symbol.op == "input":
                name = str(dict(symbol.attrs)["name"])
                attrs: _Attrs = tuple(
                    [_input_at(symbol.attrs, graph.types[name]) for graph in self._graphs]
                )
            else:
                attrs = attrs_of.get(form, (symbol.attrs,) * len(self._graphs))
            operands = [self._held[operand] for operand in self._proof.operands(form)]
            self._held[form] = self._inferred_held(symbol.op, attrs, operands)

    def _original_attrs(self) -> dict[int, _Attrs]:
        proof = self._proof
        rows = proof.stored.connection.execute("SELECT name, enode FROM original_value").fetchall()
        form_of = {name: proof.original[enode].form for name, enode in rows}
        attrs_of: dict[int, _Attrs] = {}
        for nodes in zip(*(graph.nodes for graph in self._graphs), strict=True):
            items: _Attrs = tuple([tuple(node.attrs.items()) for node in nodes])
            for name in nodes[0].outputs:
                if name not in form_of:
                    continue  # nothing needs it
                form = form_of[name]
                if get_operator(nodes[0].op).multi_output:
                    (form,) = proof.operands(form)
                if attrs_of.setdefault(form, items) != items:
                    raise UnlikeValuesError(
                        f"{name!r} is computed as another value is, at the sizes given only"
                    )
        return attrs_of

    def _holds(self, union: Edge | Congruence) -> bool:
        """Carry out a union there, if it holds; forms that a rule builds get their counterparts."""
        if isinstance(union, Congruence):
            return self._make_congruent(union)
        values = [*union.bound, *union.source]
        if any(value not in self._held for value in values):
            return False  # what it was applied to does not hold
        held = [self._held[value] for value in values]
        key = (id(union.law), *map(id, held))
        if key not in self._judged:
            self._judged[key] = self._built(union, held)
        judged = self._judged[key]
        refusal = judged if isinstance(judged, SizeRefusal) else self._build(union, judged)
        if refusal is None:
            self._unite(union.start, union.end)
            self._refused.pop(union.number, None)
            return True
        self._refused[union.number] = union, refusal
        for form in (*union.target, union.end):
            self._refusals.setdefault(form, refusal)
        return False

    def _build(self, edge: Edge, built: Sequence[_Held]) -> SizeRefusal | None:
        """Give what a rule builds its counterparts; return why that may not be."""
        rule = edge.law.rule.name
        for form, held in zip(edge.target, built, strict=True):
            if self._held.setdefault(form, held) is not held:
                return SizeRefusal(0, rule, "it builds two values there that are one here")
        if self._held[edge.start].types != self._held[edge.end].types:
            return SizeRefusal(0, rule, "its sides have other types there")
        return None

    def _built(self, edge: Edge, held: Sequence[_Held]) -> list[_Held] | SizeRefusal:
        law = edge.law
        rule = self._everywhere.setdefault(id(law.rule), law.rule.everywhere)
        sources = [
            (self._symbol(f).op, h) for f, h in zip(edge.source, held[law.variables :], strict=True)
        ]
        forms = [
            (self._symbol(f).op, node[1])
            for f, node in zip(edge.target, law.target.nodes, strict=True)
        ]
        instances: list[Instance] = []
        for place in range(len(self._graphs)):
            try:
                instance = instantiate(
                    rule,
                    [(op, dict(there.attrs[place])) for op, there in reversed(sources)],
                    tuple([there.types[place] for there in held[: law.variables]]),
                    tuple([held[root].types[place] for root in law.source.roots]),
                )
            except RelationalTensatError as error:
                return SizeRefusal(place, law.rule.name, str(error))
            if instance is None:
                return SizeRefusal(place, law.rule.name, "its condition does not hold there")
            if [(n.op, n.children) for n in instance.nodes] != forms or (
                instance.roots != law.target.roots
            ):
                return SizeRefusal(place, law.rule.name, "it builds another graph there")
            instances.append(instance)
        return [
            self._intern(_Held(tuple([n.attrs for n in nodes]), tuple([n.type for n in nodes])))
            for nodes in zip(*(instance.nodes for instance in instances), strict=True)
        ]

    def _make_congruent(self, union: Congruence) -> bool:
        """Make two forms one whose operands are one there; either may give the other its counterparts."""
        one, other = union.start, union.end
        operands = zip(self._proof.operands(one), self._proof.operands(other), strict=True)
        known = self._held.get(one) or self._held.get(other)
        if known is None or not all(self.are_one(a, b) for a, b in operands):
            return False
        if any(self._held.setdefault(form, known) is not known for form in (one, other)):
            return False
        self._unite(one, other)
        return True

    def _inferred_held(self, op: str, attrs: _Attrs, operands: Sequence[_Held]) -> _Held:
        """Return an operator's counterparts on those of its operands."""
        key = op, repr(attrs), tuple([operand.types for operand in operands])
        if key not in self._inferred:
            operator = get_operator(op)
            types = tuple(
                operator.infer(tuple([o.types[place] for o in operands]), dict(items))
                for place, items in enumerate(attrs)
            )
            self._inferred[key] = self._intern(_Held(attrs, types))
        return self._inferred[key]

    def _intern(self, held: _Held) -> _Held:
        # by text: 0.0 is not -0.0, nor is 1 True
        return self._interned.setdefault((repr(held.attrs), held.types), held)

    def _symbol(self, form: int) -> Symbol:
        return self._signatures[self._proof.nodes[form].signature].symbol

    def _root(self, form: int) -> int:
        parent = self._parent
        while (above := parent.get(form, form)) != form:
            form = parent[form] = parent.get(above, above)
        return form

    def _unite(self, form: int, other: int) -> None:
        one, two = self._root(form), self._root(other)
        if one != two:
            self._parent[two] = one


def _input_at(attrs: AttrItems, kind: ValueType) -> AttrItems:
    assert isinstance(kind, TensorType)
    return tuple({**dict(attrs), "shape": kind.shape}.items())


class ChosenAtSizes:
    """The rows of a run's table ``chosen`` at other sizes.

    Args:
        connection: to the run's database.
        graphs: the original at each of the other sizes.

    Attributes:
        refused: of the chosen e-nodes those that hold at some sizes only: where each is, and why.
        left_out: all e-nodes of rules that are not to be extracted, these and those that hold nowhere else.
        rule: that made values of the original one that are two at other sizes; "" where none is known.

    Raises:
        InputError: the log does not say how the e-graph came about, or the original is not valid there.
        UnlikeValuesError: values of the original are one at the sizes given only.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, graphs: Sequence[Graph]) -> None:
        self._stored = stored = StoredEGraph(connection)
        self._proof = proof = ProofGraph(stored)
        self._unions = unions = UnionsAtSizes(proof, graphs)
        chosen = dict(connection.execute("SELECT class, enode FROM chosen").fetchall())
        rows = connection.execute(sql("explain/output_nodes")).fetchall()
        outputs = [proof.original[index].form for (index,) in rows]
        self._forms, refused = unions.holding(chosen, outputs)
        self.refused = {enode: (self._place(enode, why), why) for enode, why in refused.items()}
        out = [*refused, *unions.never_holding()] if refused else []
        self.left_out = frozenset(enode for enode in out if stored.nodes[enode].rule)
        names = connection.execute(sql("egraph/value_names")).fetchall()
        self._names = [
            row
            for row in names
            if (form := self._forms.get(row[0])) is not None
            and unions.are_one(proof.original[row[2]].form, form)
        ]
        self._returned = connection.execute(sql("egraph/output_classes")).fetchall()
        owners = [stored.nodes[enode].owner for enode in refused]
        faults = [fault.rule for owner in owners if (fault := unions.rule_at_fault(owner))]
        self.rule = faults[0] if faults else ""

    def graph(self, original: Graph, place: int | None) -> Graph:
        """Return the chosen graph at one of the other sizes, or, for None, at those given.

        Args:
            original: the original there.
        """
        proof, stored = self._proof, self._stored
        nodes: dict[int, ChosenNode] = {}
        for owner, form in self._forms.items():
            signature = stored.signatures[proof.nodes[form].signature]
            attrs, kind = signature.symbol.attrs, signature.type
            if place is not None:
                there = self._unions.counterpart(form, place)
                attrs, kind = there.attrs, there.type
            symbol = Symbol(signature.symbol.op, attrs, signature.symbol.arity)
            children = tuple([proof.owner(operand) for operand in proof.operands(form)])
            nodes[owner] = ChosenNode(proof.enode(form), symbol, kind, children)
        return build_chosen(original, nodes, self._names, self._returned)

    def _place(self, enode: int, why: SizeRefusal) -> str:
        where = self._stored.class_text(self._stored.nodes[enode].owner)
        return f"{why.rule} at {where}" if why.rule else where
