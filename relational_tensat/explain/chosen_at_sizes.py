"""The chosen graph at other sizes of dynamic dimensions, or the e-nodes that do not hold there."""

from __future__ import annotations

from collections.abc import Sequence

from relational_tensat.base import duckdb
from relational_tensat.base.files import sql
from relational_tensat.egraph.catalogue import Symbol
from relational_tensat.egraph.chosen_graph import ChosenNode, build_chosen
from relational_tensat.explain.egraph_tables import StoredEGraph
from relational_tensat.explain.proof import ProofGraph
from relational_tensat.explain.unions_at_sizes import SizeRefusal, UnionsAtSizes
from relational_tensat.tensor import Graph


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
