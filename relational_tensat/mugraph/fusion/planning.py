"""Which parts of a model are worth a search: those that the cheapest graph could have.

A graph and all kernels for its parts are an e-graph: a value is given by its operator, or by a kernel.
Where no kernel was sought yet, it is taken to cost the least that one could be modelled to take. If then
the cheapest graph has kernels that are known only, no other search can make it cheaper; else those that it
has are sought next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from relational_tensat.extract.extraction import extract
from relational_tensat.extract.extraction_options import ExtractionOptions
from relational_tensat.extract.problem import UNUSED, ExtractionProblem
from relational_tensat.mugraph.fusion.candidates import Candidate
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
    cost_us: float
    pattern: str = ""


class Plan:
    """A graph, and where in it parts are.

    Args:
        graph: the graph.
        operator_us: what one of its operators costs.
        parts: all that kernels may stand for, with their patterns.
    """

    def __init__(
        self,
        graph: Graph,
        operator_us: Callable[[Node], float],
        parts: Sequence[tuple[str, Candidate]],
    ) -> None:
        names = [name for node in graph.nodes for name in node.outputs]
        self._classes = {name: number for number, name in enumerate(names)}
        self._count = len(names)
        self._e_nodes: list[_ENode] = []
        for node in graph.nodes:
            self._add(node.outputs, node.inputs, operator_us(node))
        for pattern, part in parts:
            self._add(part.outputs, part.inputs, 0.0, pattern)
        self._root = self._count
        self._e_nodes.append(_ENode(self._root, self._children(graph.outputs), 0.0))

    def cheapest(self, costs_us: Mapping[Key, float]) -> Planned:
        """Return the cheapest graph with kernels of these costs."""
        rows: list[tuple[_ENode, Key | None, float]] = []
        for e_node in self._e_nodes:
            if e_node.pattern:
                keys = [(e_node.pattern, n) for n in (1, 2)]
                rows += [(e_node, key, costs_us[key]) for key in keys if key in costs_us]
            else:
                rows.append((e_node, None, e_node.cost_us))
        children = [e_node.children for e_node, _, _ in rows]
        problem = ExtractionProblem(
            np.array([cost_us for _, _, cost_us in rows]),
            np.array([e_node.klass for e_node, _, _ in rows], np.int32),
            np.cumsum([0, *map(len, children)], dtype=np.int32),
            np.array([child for each in children for child in each], np.int32),
            self._root + 1,
            self._root,
            np.full(self._root + 1, UNUSED, np.int32),
        )
        found = extract(problem, ExtractionOptions(time_limit_s=_TIME_LIMIT_S))
        chosen = (rows[number][1] for number in found.choice if number != UNUSED)
        return Planned(found.cost_us, frozenset(key for key in chosen if key is not None))

    def _add(
        self, outputs: Sequence[str], inputs: Sequence[str], cost_us: float, pattern: str = ""
    ) -> None:
        """Add what gives values; several of them are parts of one."""
        klass = self._classes[outputs[0]]
        if len(outputs) > 1:
            klass, self._count = self._count, self._count + 1
            self._e_nodes += [_ENode(self._classes[name], (klass,), 0.0) for name in outputs]
        self._e_nodes.append(_ENode(klass, self._children(inputs), cost_us, pattern))

    def _children(self, names: Sequence[str]) -> tuple[int, ...]:
        """Return the classes of values that are computed, each once."""
        found = (self._classes[name] for name in names if name in self._classes)
        return tuple(dict.fromkeys(found))
