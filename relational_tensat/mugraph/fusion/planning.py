"""Which parts of a model are worth a search: those that the cheapest graph could have.

Graphs that compute the same, and all kernels for their parts, are an e-graph: a value is given by an
operator of one of them, or by a kernel. Where no kernel was sought yet, it is taken to cost the least that
one could be modelled to take. If then the cheapest graph has kernels that are known only, no other search
can make it cheaper; else those that it has are sought next.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from relational_tensat.extract.extraction import extract
from relational_tensat.extract.extraction_options import ExtractionOptions
from relational_tensat.extract.problem import UNUSED, ExtractionProblem
from relational_tensat.mugraph.fusion.candidates import Candidate
from relational_tensat.mugraph.fusion.versions import Version
from relational_tensat.tensor import Graph, Node

#: A part's pattern, and how many kernels there are for it at most.
Key: TypeAlias = tuple[str, int]

_TIME_LIMIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Planned:
    """The cheapest graph.

    Attributes:
        cost_us: of it, or no more.
        keys: of the kernels that it has.
    """

    cost_us: float
    keys: frozenset[Key]


@dataclass(frozen=True, slots=True)
class _ENode:
    klass: int
    children: tuple[int, ...]
    pattern: str = ""


class Plan:
    """Graphs that compute the same, as one e-graph, and where in it parts are.

    Args:
        operator_us: what an operator of a graph costs.
    """

    def __init__(self, operator_us: Callable[[Node, Graph], float]) -> None:
        self._operator_us = operator_us
        self._numbers: dict[Hashable, int] = {}
        self._e_nodes: dict[_ENode, float] = {}
        self._outputs: tuple[int, ...] = ()
        self._versions = 0

    def add(self, version: Version, parts: Iterable[tuple[str, Candidate]]) -> None:
        """Add a graph.

        Args:
            version: the graph; what it gives is what those before give.
            parts: all of it that kernels may stand for, with their patterns.
        """
        self._versions += 1
        graph = version.graph
        classes = {name: self._class_of(name, version) for n in graph.nodes for name in n.outputs}
        known = set(graph.weights)
        for node in graph.nodes:
            is_known = known.issuperset(node.inputs)  # folded, so free
            if is_known:
                known.update(node.outputs)
            cost_us = 0.0 if is_known else self._operator_us(node, graph)
            self._add(classes, node.outputs, node.inputs, cost_us)
        for pattern, part in parts:
            self._add(classes, part.outputs, part.inputs, 0.0, pattern)
        self._outputs = self._outputs or _children(classes, graph.outputs)

    def cheapest(self, costs_us: Mapping[Key, float]) -> Planned:
        """Return the cheapest graph with kernels of these costs."""
        rows: list[tuple[_ENode, Key | None, float]] = []
        for e_node, cost_us in self._e_nodes.items():
            if e_node.pattern:
                keys = [(e_node.pattern, n) for n in (1, 2)]
                rows += [(e_node, key, costs_us[key]) for key in keys if key in costs_us]
            else:
                rows.append((e_node, None, cost_us))
        root = len(self._numbers)
        rows.append((_ENode(root, self._outputs), None, 0.0))
        children = [e_node.children for e_node, _, _ in rows]
        problem = ExtractionProblem(
            np.array([cost_us for _, _, cost_us in rows]),
            np.array([e_node.klass for e_node, _, _ in rows], np.int32),
            np.cumsum([0, *map(len, children)], dtype=np.int32),
            np.array([child for each in children for child in each], np.int32),
            root + 1,
            root,
            np.full(root + 1, UNUSED, np.int32),
        )
        found = extract(problem, ExtractionOptions(time_limit_s=_TIME_LIMIT_S))
        chosen = (rows[number][1] for number in found.choice if number != UNUSED)
        return Planned(found.cost_us, frozenset(key for key in chosen if key is not None))

    def _class_of(self, name: str, version: Version) -> int:
        own: Hashable = version.classes.get(name, (self._versions, name))
        return self._numbers.setdefault(own, len(self._numbers))

    def _add(
        self,
        classes: Mapping[str, int],
        outputs: Sequence[str],
        inputs: Sequence[str],
        cost_us: float,
        pattern: str = "",
    ) -> None:
        """Add what gives values; several of them are parts of one."""
        values, children = tuple(classes[name] for name in outputs), _children(classes, inputs)
        klass, *others = values
        if others:
            klass = self._numbers.setdefault((values, children), len(self._numbers))
            for value in values:
                self._e_nodes[_ENode(value, (klass,))] = 0.0
        if klass not in children:
            e_node = _ENode(klass, children, pattern)
            self._e_nodes[e_node] = min(cost_us, self._e_nodes.get(e_node, cost_us))


def _children(classes: Mapping[str, int], names: Iterable[str]) -> tuple[int, ...]:
    """Return the classes of values that are computed, each once."""
    return tuple(sorted({classes[name] for name in names if name in classes}))
