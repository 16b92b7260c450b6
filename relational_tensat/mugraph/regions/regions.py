"""Regions of a model: nodes that one node depends on and nothing else does, as far as operators and limits
allow.

All readers of what is within are within, but for the last node's, so a region is convex; and groups of
these that give several values. Regions may overlap. A part that was left out is a row, too, with the
reason: in a database of the tables ``region`` and ``fused_region``; of the latter a run's database has one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from relational_tensat.base.errors import InputError, RelationalTensatError
from relational_tensat.base.files import sql
from relational_tensat.egraph.database import Database
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.mugraph_json import content_hash, decoded, encoded
from relational_tensat.mugraph.regions.composites import CONDITIONS
from relational_tensat.mugraph.regions.groups import Group, groups
from relational_tensat.mugraph.regions.node_programs import LoweredRegion, lowered
from relational_tensat.tensor import Graph, Node

#: The outcomes of a part: it got a kernel, or none was found; none could save anything; the time was over
#: before its turn; it is no region, or one that no kernel is made of; or it ends there, as it would be no
#: region with the nodes before.
FATES = ("kernel", "none found", "no gain", "no time", "left out", "border")


@dataclass(frozen=True, slots=True)
class RegionRow:
    """A part of a model, or of the cheapest graph that computes the same.

    Attributes:
        source: ``model`` or ``cheapest``.
        outputs: the values that it gives.
        operators: of its program, or of the node.
        fate: one of ``FATES``.
        reason: why there is no kernel, or no larger region; else empty.
        operators_us: the cost of the model's operators; None if nothing was sought.
        kernel_us: the kernel's modelled time.
        mugraph: the kernel's key; empty for none.
    """

    source: str
    outputs: tuple[str, ...]
    operators: tuple[str, ...]
    fate: str
    reason: str = ""
    operators_us: float | None = None
    kernel_us: float | None = None
    mugraph: str = ""

    def values(self) -> tuple[Any, ...]:
        """Return the row of the table ``fused_region``."""
        source, outputs, operators, *others, mugraph = astuple(self)
        return source, list(outputs), list(operators), *others, mugraph or None


#: Notes what is left out.
Leave: TypeAlias = Callable[[RegionRow], None]


def no_matter(row: RegionRow) -> None:
    """Note nothing."""


#: A program of more operators is beyond a search of seconds.
_MOST_STEPS = 10
_FEWEST_STEPS = 2
#: Operators within kernels for processors only: a GPU's own convolution is not modelled as a sum.
OF_PROCESSORS = frozenset({"conv"})
#: Nodes of a root mean square before its last one.
_LONGEST_CHAIN = 5


@dataclass(frozen=True, slots=True)
class ModelRegion:
    """A part of a model that is a program.

    Attributes:
        outputs: the values that the model's nodes at these places give; equal regions are one.
        nodes: how many nodes of the model one of them has.
        program: on index variables.
        values: how many values one of them gives, so many after the other in ``outputs``.
        orders: of each value at the first place the index variables, as the model has them in memory;
            none of those that are read from a database.
    """

    outputs: tuple[str, ...]
    nodes: int
    program: MuGraph
    values: int = 1
    orders: tuple[tuple[str, ...], ...] = ()

    @property
    def places(self) -> list[tuple[str, ...]]:
        """The values that each of the equal regions gives."""
        starts = range(0, len(self.outputs), self.values)
        return [self.outputs[start : start + self.values] for start in starts]


def find_regions(graph: Graph) -> tuple[list[ModelRegion], list[RegionRow]]:
    """Return the regions of a model, recurring ones once, and what was left out, with their borders.

    Those of one value come first, then those of two, of three, and of four.

    Args:
        graph: the model.
    """
    cones = Cones(graph, OF_PROCESSORS)
    regions: dict[str, ModelRegion] = {}
    left_out: list[RegionRow] = []
    within: list[frozenset[str]] = []
    parts: list[tuple[Node, ...]] = []
    for node in reversed(graph.nodes):
        try:
            grown = list(cones.grown(node))
        except RelationalTensatError as error:
            left_out.append(
                RegionRow("model", node.outputs[:1], (node.op,), "left out", str(error))
            )
            continue
        cone = grown[-1]
        parts += [one.nodes for one in (*grown[:1], *grown[1:][-1:])]
        program = cone.lowered.program
        names = _names(cone.nodes)
        if len(program.operators) < _FEWEST_STEPS or any(names <= other for other in within):
            continue  # what it computes, a larger region does, too
        within.append(names)
        left_out += cones.borders(cone, "model")
        _add(
            regions,
            ModelRegion(node.outputs[:1], len(cone.nodes), program, orders=cone.lowered.orders),
        )
    for group, region in _lowered_groups(graph, parts):
        names = _names(group.nodes)
        if not any(names <= other for other in within):
            within.append(names)
            size, values = len(group.nodes), len(group.outputs)
            _add(regions, ModelRegion(group.outputs, size, region.program, values, region.orders))
    return list(regions.values()), left_out


def _lowered_groups(
    graph: Graph, parts: Sequence[Sequence[Node]]
) -> Iterator[tuple[Group, LoweredRegion]]:
    """Yield two parts as one, then three and more, the largest first, with the programs that they are."""
    found = sorted(groups(graph, parts), key=lambda group: (len(group.outputs), -len(group.nodes)))
    for group in found:
        with suppress(RelationalTensatError):
            region = lowered(graph, group.nodes, group.outputs[-1], group.outputs)
            if _FEWEST_STEPS <= len(region.program.operators) <= _MOST_STEPS:
                yield group, region


def _names(nodes: Sequence[Node]) -> frozenset[str]:
    return frozenset(node.outputs[0] for node in nodes)


def _add(regions: dict[str, ModelRegion], region: ModelRegion) -> None:
    key = content_hash(replace(region.program, name=""))
    known = regions.get(key)
    regions[key] = replace(region, outputs=(*known.outputs, *region.outputs)) if known else region


@dataclass(frozen=True, slots=True)
class Cone:
    """Nodes of which only the last one's result is read by others.

    Attributes:
        nodes: in order.
        lowered: their program.
    """

    nodes: tuple[Node, ...]
    lowered: LoweredRegion


class Cones:
    """The regions of a model, grown from their last nodes.

    Args:
        graph: the model.
        without: operators that no region has.
        most_steps: of a program.
    """

    def __init__(
        self, graph: Graph, without: Collection[str] = (), most_steps: int = _MOST_STEPS
    ) -> None:
        self._graph = graph
        self._most_steps = most_steps
        self._without = frozenset(without)
        self._makers: Mapping[str, Node] = {o: node for node in graph.nodes for o in node.outputs}
        self._readers: dict[str, set[str]] = {}
        for node in graph.nodes:
            for name in node.inputs:
                self._readers.setdefault(name, set()).add(node.outputs[0])

    def grown(self, root: Node) -> Iterator[Cone]:
        """Yield the regions that end in a node, each within the next.

        Raises:
            RelationalTensatError: the node alone is not one.
        """
        if root.op in self._without:
            raise InputError(f"{root.op} is left to itself")
        region, cone = self._begun(root)
        refused: set[str] = set()
        while True:
            yield cone
            grown = None
            for maker in self._candidates(region, refused):
                grown = self._with_node(region, maker) or self._with_joined(region, maker)
                if grown is None:
                    refused.add(maker.outputs[0])
                    continue
                if _steps(grown[1]) <= self._most_steps:
                    break
                refused.add(maker.outputs[0])
                grown = None
            if grown is None:
                return
            region, cone = grown

    def _begun(self, root: Node) -> tuple[dict[str, Node], Cone]:
        """Return a node as a region, with what its conditions are computed by, if it can be.

        Raises:
            RelationalTensatError: the node alone is not one.
        """
        *others, plain = self._ways({}, root)
        for region in others:
            with suppress(RelationalTensatError):
                return region, self._cone(region)
        return plain, self._cone(plain)

    def _ways(self, region: dict[str, Node], node: Node) -> list[dict[str, Node]]:
        """Return a region with a node: first with what computes its conditions, then reading these."""
        plain = {**region, node.outputs[0]: node}
        computed = self._with_conditions(plain, node)
        return [computed, plain] if computed is not plain else [plain]

    def _with_node(
        self, region: dict[str, Node], maker: Node
    ) -> tuple[dict[str, Node], Cone] | None:
        """Return a region with a node, if it is a program; see ``_with_chain``."""
        found = (self._with_chain(way) for way in self._ways(region, maker))
        return next((grown for grown in found if grown is not None), None)

    def _with_conditions(self, region: dict[str, Node], node: Node) -> dict[str, Node]:
        """Return a region with what computes the conditions that a node reads."""
        for name in node.inputs:
            maker = self._makers.get(name)
            is_condition = maker is not None and maker.op in _CONDITIONS
            if maker is not None and is_condition and self._is_inner(name, maker, region):
                region = self._with_conditions({**region, name: maker}, maker)
        return region

    def borders(self, cone: Cone, source: str) -> Iterator[RegionRow]:
        """Yield what comes before a region that cannot grow, and why it is not within."""
        region = {node.outputs[0]: node for node in cone.nodes}
        read = dict.fromkeys(name for node in cone.nodes for name in node.inputs)
        for name in read:
            maker = self._makers.get(name)
            if maker is not None and maker.outputs[0] not in region:
                reason = f"{name} ({maker.op}) is not within: {self._why_not(region, maker)}"
                yield RegionRow(source, cone.nodes[-1].outputs, (maker.op,), "border", reason)

    def _why_not(self, region: dict[str, Node], maker: Node) -> str:
        (name, *others) = maker.outputs
        if maker.op in self._without:
            return f"{maker.op} is left to itself"
        if maker.op not in _PARTS:
            if others:
                return f"{maker.op} gives several values"
            if name in self._graph.outputs:
                return "it is a result of the model"
            if not self._readers[name] <= region.keys():
                return "others read it, too: with it, the region would not be convex"
        reasons = []
        for way in self._ways(region, maker):
            try:
                steps = _steps(self._cone(way))
            except RelationalTensatError as error:
                reasons.append(str(error))
            else:
                return f"with it, there are {steps} operators, {self._most_steps} at most"
        return reasons[0]

    def _with_chain(self, region: dict[str, Node]) -> tuple[dict[str, Node], Cone] | None:
        """Return a region with up to five more nodes, if it is a program only then, or a shorter one.

        The end of a root mean square is several operators before all of it is there.
        """
        best: tuple[dict[str, Node], Cone] | None = None
        for _ in range(_LONGEST_CHAIN + 1):
            try:
                cone = self._cone(region)
            except RelationalTensatError:
                pass
            else:
                if best is None or _steps(cone) < _steps(best[1]):
                    best = region, cone
            makers = [m for m in self._candidates(region, set()) if m.op in _CHAIN]
            if not makers or next(reversed(region.values())).op not in _CHAIN:
                break
            region = {**region, **{m.outputs[0]: m for m in makers}}
        return best

    def _with_joined(
        self, region: dict[str, Node], maker: Node
    ) -> tuple[dict[str, Node], Cone] | None:
        """Return a region with a product and those that it is joined with: of one factor, they are one."""
        (name, *_) = maker.outputs
        joined = {n for node in region.values() if node.op == "concat" for n in node.inputs}
        products = {
            other.outputs[0]: other
            for other in self._candidates(region, set())
            if other.op == "matmul" and other.outputs[0] in joined
        }
        if name not in products or len(products) == 1:
            return None
        return self._with_chain({**region, **products})

    def _candidates(self, region: dict[str, Node], refused: set[str]) -> Iterator[Node]:
        """Yield nodes whose result only the region reads, or which take parts only, nearest first."""
        for node in list(region.values()):
            for name in node.inputs:
                maker = self._makers.get(name)
                if maker is None or not {maker.outputs[0]}.isdisjoint({*region, *refused}):
                    continue
                if self._is_inner(name, maker, region) and maker.op not in self._without:
                    yield maker

    def _is_inner(self, name: str, maker: Node, region: Mapping[str, Node]) -> bool:
        """Whether only the region reads a value; parts of others may be taken again, as that is free."""
        if maker.op in _PARTS or maker.op in CONDITIONS:
            return True
        is_read_within = self._readers[name] <= region.keys() and name not in self._graph.outputs
        return is_read_within and len(maker.outputs) == 1

    def _cone(self, region: dict[str, Node]) -> Cone:
        nodes = tuple(node for node in self._graph.nodes if node.outputs[0] in region)
        return Cone(nodes, lowered(self._graph, nodes, nodes[-1].outputs[0]))


def _steps(cone: Cone) -> int:
    return len(cone.lowered.program.operators)


#: Operators that compute conditions; of a comparison each region has its own, as that is nearly free.
_CONDITIONS = CONDITIONS | {"is_nan"}
#: Operators that take a part of a value: a kernel's loads do that.
_PARTS = frozenset({"gather", "slice", "split"})
#: Values that several regions may have, and others read: each computes them for itself.
SHARED = _PARTS | CONDITIONS | {"dequantize"}
#: The operators of the chain of a root mean square, and of the one that puts 0 in place of NaN.
_CHAIN = frozenset({"reciprocal", "sqrt", "add", "reduce_mean", "pow", "div", "where", "is_nan"})


_OF_RUNS = "schema/shared"


def write_regions(path: Path, regions: Sequence[ModelRegion], rows: Iterable[RegionRow]) -> None:
    """Write a new database.

    Args:
        path: a file that is not there yet.
        regions: in the order of their numbers.
        rows: the parts that were left out, and borders.

    Raises:
        InputError: the file is there, or cannot be written.
    """
    if path.exists():
        raise InputError(f"{path}: is there already; name another database")
    (of_rows,) = (text for text in sql(_OF_RUNS).split("\n\n") if "TABLE fused_region (" in text)
    database = Database(path)
    try:
        database.script("mugraph/region")
        database.execute_all(of_rows, _OF_RUNS)
        database.append("region", list(_rows(regions)))
        database.append("fused_region", [row.values() for row in rows])
    except BaseException:
        database.close()
        path.unlink(missing_ok=True)
        raise
    database.close()


def regions_of(rows: Iterable[tuple[Any, ...]]) -> list[ModelRegion]:
    """Return the regions that rows of ``inspect/regions`` are.

    Raises:
        InputError: a program is malformed.
    """
    return [
        ModelRegion(
            tuple(name for outputs in places for name in outputs),
            nodes,
            decoded(json.loads(program), f"region {number}"),
            len(places[0]),
        )
        for number, places, nodes, program in rows
    ]


def _rows(regions: Sequence[ModelRegion]) -> Iterator[tuple[Any, ...]]:
    for number, region in enumerate(regions):
        operators = [step.op for step in region.program.operators]
        program = json.dumps(encoded(region.program), ensure_ascii=False)
        for place, outputs in enumerate(region.places):
            yield number, place, list(outputs), region.nodes, operators, program
