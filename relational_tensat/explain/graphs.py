"""From terms back to tensor graphs, with the names of the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from relational_tensat.base.files import sql
from relational_tensat.egraph.catalogue import Symbol
from relational_tensat.egraph.chosen_graph import ChosenNode, build_chosen
from relational_tensat.explain.egraph_tables import StoredEGraph, StoredSignature
from relational_tensat.explain.other_sizes import Counterpart
from relational_tensat.explain.rewrite import RewriteStep, changed_terms
from relational_tensat.explain.terms import Outputs, Terms
from relational_tensat.tensor.graph import Graph, Weight
from relational_tensat.tensor.types import Array, TensorType, numpy_dtype


def graph_of(
    outputs: Outputs,
    terms: Terms,
    stored: StoredEGraph,
    names: Mapping[str, int],
    counterparts: Mapping[int, Counterpart] | None = None,
) -> Graph:
    """Return the tensor graph that terms are.

    Args:
        names: terms of the original graph's values, by name; other values get made-up names.
        counterparts: the terms at other sizes, to return the graph there. Its values have the same names.
    """
    chosen: dict[int, ChosenNode] = {}
    inputs: dict[str, TensorType] = {}
    weights: dict[str, Weight] = {}
    small = dict(stored.connection.execute("SELECT name, data FROM original_weight").fetchall())
    for term in terms.of(outputs):
        signature, children = terms[term]
        kind = stored.signatures[signature]
        if counterparts is not None:
            there = counterparts[term]
            symbol = Symbol(kind.symbol.op, there.attrs, kind.symbol.arity)
            kind = StoredSignature(symbol, kind.operands, there.type)
        chosen[term] = ChosenNode(term, kind.symbol, kind.type, children)
        if kind.symbol.op in ("input", "weight"):
            assert isinstance(kind.type, TensorType)
            name = str(dict(kind.symbol.attrs)["name"])
            if kind.symbol.op == "input":
                inputs[name] = kind.type
            else:
                weights[name] = Weight(kind.type, _data(small.get(name), kind.type))
    returned = [
        name for name, _ in stored.connection.execute(sql("egraph/output_classes")).fetchall()
    ]
    ((model,),) = stored.connection.execute("SELECT value FROM meta WHERE key = 'model'").fetchall()
    frame = Graph(model, inputs, weights, (), tuple(returned), {})
    output_of = dict(zip(returned, outputs, strict=True))
    called = {name: term for name, term in names.items() if term in chosen} | output_of
    rows = [(term, name, term, "") for name, term in called.items()]
    return build_chosen(frame, chosen, rows, list(output_of.items()))


def names_after(
    names: Mapping[str, int], terms: Terms, rewrites: Iterable[RewriteStep]
) -> dict[str, int]:
    """Return which terms the original graph's values are after rewrites: equal ones.

    Args:
        names: their terms in the original graph, by name.
    """
    current = dict(names)
    for rewrite in rewrites:
        after = {replaced.before: replaced.after for replaced in rewrite.replaced}
        after |= {changed.old: changed.new for changed in changed_terms(terms, rewrite)}
        current = {name: after.get(term, term) for name, term in current.items()}
    return current


def _data(stored: bytes | None, kind: TensorType) -> Array | None:
    if stored is None:
        return None
    dtype = numpy_dtype(kind.dtype)
    array = np.frombuffer(stored, dtype.newbyteorder("<")).reshape(kind.shape)
    return array.astype(dtype)
