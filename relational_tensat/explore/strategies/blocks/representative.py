"""The e-graph of the windows that are explored: one of each form, one after the other.

Whatever a window takes from outside is free there: weights and inputs have names of their own, and
values that the windows before compute are results of an operator that no rule knows. So what rules find
holds for any operands, those of every window of this form among them. That operator is applied to what
the window before computes: a rule that would join two windows would close a cycle, as it would
in the graph itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from relational_tensat.base.records import record
from relational_tensat.egraph.cycles import HEIGHT_STEP
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.loading import CHILD_COLUMNS
from relational_tensat.egraph.published import create_tables
from relational_tensat.explore.strategies.blocks.loaded import LoadedGraph
from relational_tensat.explore.strategies.blocks.partition import Plan, Window
from relational_tensat.tensor.types import Attrs, TensorType, ValueType


@record
class Placement:
    """Where a window is in the e-graph that is explored.

    Attributes:
        nodes, free: its e-nodes and what is free in it there, in the order of its part's.
        middle: the e-node that its second segment continues from.
        bases: those of ``free`` that stand for values that are computed from inputs.
    """

    nodes: tuple[int, ...]
    free: tuple[int, ...]
    middle: int
    bases: tuple[int, ...]


@dataclass
class Representative:
    """An e-graph of windows.

    Attributes:
        placed: by the windows' kind.
        constants: e-nodes of the graph that are constants, and the e-nodes that they are here.
        last: the highest id of an e-node before anything is explored.
    """

    egraph: EGraph
    placed: list[Placement] = field(default_factory=list)
    constants: dict[int, int] = field(default_factory=dict)
    last: int = 0


def build_representative(
    graph: LoadedGraph, plan: Plan, original: EGraph, database: Database
) -> Representative:
    """Put a plan's windows into the tables of a new database, and return their e-graph.

    Args:
        original: the e-graph of the graph itself.
    """
    database.stopwatch = original.database.stopwatch
    return _Builder(graph, original, EGraph(original.graph, database)).build(plan)


class _Builder:
    def __init__(self, graph: LoadedGraph, original: EGraph, egraph: EGraph) -> None:
        self._graph = graph
        self._original = original
        self._egraph = egraph
        self._representative = Representative(egraph)
        self._signatures: list[int] = []
        self._children: list[tuple[int, ...]] = []
        self._heights: list[int] = []

    def build(self, plan: Plan) -> Representative:
        results: list[int] = []
        for window in plan.kinds:
            placed = self._place(window, results)
            self._representative.placed.append(placed)
            operands = {child for node in placed.nodes for child in self._children[node - 1]}
            results = [node for node in placed.nodes if node not in operands]
        self._representative.last = len(self._signatures)
        self._write()
        return self._representative

    def _place(self, window: Window, results: Sequence[int]) -> Placement:
        part = window.part
        local = {node: self._constant(node) for node in part.constants}
        values = [node for node in part.free if self._is_value(node)]
        barrier = dict(zip(values, self._barrier(values, results, window.kind), strict=True))
        for index, node in enumerate(part.free):
            local[node] = barrier.get(node) or self._leaf(node, f"{window.kind}.{index}")
        for node in part.nodes:
            signature, children = self._graph.nodes[node]
            symbol = self._original.catalogue.symbol_of(signature)
            operands = [local[child] for child in children]
            local[node] = self._add(symbol.op, dict(symbol.attrs), operands)
        return Placement(
            tuple(local[node] for node in part.nodes),
            tuple(local[node] for node in part.free),
            local[window.middle],
            tuple(barrier.values()),
        )

    def _is_value(self, node: int) -> bool:
        return node in self._graph.on_inputs and not self._graph.is_leaf(node)

    def _type(self, node: int) -> ValueType:
        return self._original.catalogue.type_of(self._graph.nodes[node].signature)

    def _constant(self, node: int) -> int:
        copy = self._representative.constants.get(node)
        if copy is None:
            symbol = self._original.catalogue.symbol_of(self._graph.nodes[node].signature)
            copy = self._representative.constants[node] = self._add(
                symbol.op, dict(symbol.attrs), ()
            )
        return copy

    def _leaf(self, node: int, name: str) -> int:
        kind = self._type(node)
        assert isinstance(kind, TensorType)  # see plan.make_plan
        op = "input" if node in self._graph.on_inputs else "weight"
        return self._add(op, {"name": name, "dtype": kind.dtype, "shape": kind.shape}, ())

    def _barrier(self, values: Sequence[int], results: Sequence[int], kind: int) -> list[int]:
        """Add the operator that no rule knows, with a result for each of some values."""
        if not values:
            return []
        operands = list(results)
        while len(operands) > CHILD_COLUMNS:
            gathering = self._add("noop", {}, operands[-CHILD_COLUMNS:])
            operands[-CHILD_COLUMNS:] = [gathering]
        types = [self._type(node) for node in values]
        attrs: Attrs = {
            "op_type": "window",
            "domain": "",
            "opset": 0,
            "payload": "",
            "out_types": tuple((t.dtype, t.shape) for t in types if isinstance(t, TensorType)),
            "key": str(kind),
        }
        opaque = self._add("opaque", attrs, operands)
        return [self._add("part", {"index": index}, (opaque,)) for index in range(len(values))]

    def _add(self, op: str, attrs: Attrs, operands: Sequence[int]) -> int:
        catalogue = self._egraph.catalogue
        types = tuple(catalogue.type_of(self._signatures[i - 1]) for i in operands)
        self._signatures.append(catalogue.intern(op, attrs, types))
        self._children.append(tuple(operands))
        highest = max((self._heights[i - 1] for i in operands), default=0)
        self._heights.append(highest + HEIGHT_STEP)
        return len(self._signatures)

    def _write(self) -> None:
        egraph, count = self._egraph, len(self._signatures)
        database, ids, zeros = egraph.database, list(range(1, count + 1)), [0] * count
        padded = [[*kids, *[0] * (CHILD_COLUMNS - len(kids))] for kids in self._children]
        types = [egraph.catalogue.signatures[s - 1].type for s in self._signatures]
        falses = [False] * count
        database.begin()
        create_tables(database)
        egraph.catalogue.flush(database)
        children = list(map(list, zip(*padded, strict=True)))
        database.insert(
            "enode",
            {
                "id": ids,
                "class": ids,
                "signature": self._signatures,
                "head": zeros,
                **{f"c{i}": column for i, column in enumerate(children)},
                "iteration": zeros,
                "rule": zeros,
                "stamp": zeros,
                "filtered": falses,
            },
        )
        database.insert(
            "eclass",
            {
                "id": ids,
                "parent": ids,
                "type": types,
                "height": self._heights,
                "weight_only": falses,
            },
        )
        database.commit()
        egraph.next_id = count + 1
        egraph.e_nodes = egraph.e_classes = count
