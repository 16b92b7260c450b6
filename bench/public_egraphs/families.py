"""A hundred generated e-graphs of the kinds that the public benchmarks have, for readers who have no files.

Each is a file of the egraph-serialize format like those. They are not the published ones: what
is alike is which classes share what, and which costs occur.

*sums*: outputs are sums of many terms, and every class of a sum has several ways to split it (rover's
filters, impress's products). *logic*: gates of two inputs with other pairs of inputs for many, and
inverters both ways, which are cycles (esyn, emorphic, circuits). *expressions*: deep, with many e-nodes a
class and few costs (herbie, egg). *lanes*: vectors whole or lane by lane (diospyros). *covers*: weighted
set covers (set, maxsat). *tensors*: random and cyclic with odd rings (tensat; ``extract.known_optimum``).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.extract.known_optimum import planted
from relational_tensat.base.files import write_aside

COUNT = 100


@dataclass(frozen=True)
class _Builder:
    """E-nodes as they are added: class, children (classes) and cost."""

    random: np.random.Generator
    nodes: list[tuple[str, tuple[str, ...], float]] = field(default_factory=list)

    def add(self, klass: str, children: tuple[str, ...] | list[str], cost: float) -> str:
        self.nodes.append((klass, tuple(children), cost))
        return klass

    def some(self, count: int, below: int) -> list[int]:
        """Return that many different numbers from 0, fewer where there are not so many."""
        return [int(number) for number in self.random.permutation(below)[:count]]

    def content(self, roots: list[str]) -> dict[str, Any]:
        """Return the e-graph as a file has it."""
        names: dict[str, str] = {}
        for index, (klass, _, _) in enumerate(self.nodes):
            names.setdefault(klass, str(index))
        nodes = {
            str(index): {
                "op": f"f{len(children)}",
                "children": [names[child] for child in children],
                "eclass": klass,
                "cost": cost,
            }
            for index, (klass, children, cost) in enumerate(self.nodes)
        }
        return {"nodes": nodes, "root_eclasses": roots, "class_data": {}}


def _sums(size: int, build: _Builder) -> list[str]:
    known: set[frozenset[int]] = set()

    def sum_of(terms: frozenset[int]) -> str:
        name = "+".join(map(str, sorted(terms)))
        if terms in known:
            return name
        known.add(terms)
        if len(terms) == 1:
            return build.add(name, [], 0.0)
        order = sorted(terms)
        for _ in range(1 if len(order) == 2 else 3):
            cut = int(build.random.integers(1, len(order)))
            first = frozenset(order[i] for i in build.some(cut, len(order)))
            build.add(name, [sum_of(first), sum_of(terms - first)], 16.0 + 8.0 * len(order))
        return name

    n_terms = 5 + size // 3
    return [
        sum_of(frozenset(build.some(int(build.random.integers(3, n_terms)), n_terms)))
        for _ in range(4 + size)
    ]


def _logic(size: int, build: _Builder) -> list[str]:
    signals = [build.add(f"i{index}", [], 1.0) for index in range(8 + size)]
    for index in range(60 * size):
        gate, nearest = f"g{index}", max(0, len(signals) - 40)
        for _ in range(int(build.random.integers(1, 4))):
            first, second = build.some(2, len(signals) - nearest)
            cost = float(build.random.integers(2, 5))
            build.add(gate, [signals[nearest + first], signals[nearest + second]], cost)
        build.add(f"not {gate}", [gate], 1.0)
        if build.random.random() < 0.3:
            first, second = build.some(2, len(signals) - nearest)
            build.add(f"not {gate}", [signals[nearest + first], signals[nearest + second]], 2.0)
            build.add(gate, [f"not {gate}"], 1.0)
        signals += [gate, f"not {gate}"]
    return signals[-2 * (4 + size) :: 2]


def _expressions(size: int, build: _Builder) -> list[str]:
    layers = [[build.add(f"x{index}", [], 64.0) for index in range(6)]]
    for depth in range(4 + 2 * size):
        below = [klass for layer in layers[-3:] for klass in layer]
        layer = [f"e{depth}.{index}" for index in range(12)]
        for klass in layer:
            for _ in range(int(build.random.integers(1, 10))):
                arity = int(build.random.integers(1, 4))
                children = [below[i] for i in build.some(arity, len(below))]
                build.add(klass, children, 128.0 * int(build.random.integers(1, 4)))
        layers.append(layer)
    return layers[-1]


def _lanes(size: int, build: _Builder) -> list[str]:
    scalars = [build.add(f"s{index}", [], 1.0) for index in range(4 * size)]
    vectors: list[str] = []
    for index in range(6 * size):
        lanes = []
        for lane in range(4):
            sides = [scalars[i] for i in build.some(2, len(scalars))]
            lanes.append(build.add(f"l{index}.{lane}", sides, 1.0))
        vector = build.add(f"v{index}", lanes, 4.0)
        for _ in range(min(len(vectors), 3)):
            sides = [vectors[i] for i in build.some(2, len(vectors))]
            build.add(vector, sides, float(build.random.integers(1, 6)))
        vectors.append(vector)
        scalars += lanes
    return vectors[-2 * size :]


def _covers(size: int, build: _Builder) -> list[str]:
    elements = [f"x{index}" for index in range(15 * size)]
    for index in range(10 * size):
        subset = build.add(f"s{index}", [], float(build.random.integers(1, 6)))
        for element in build.some(5, len(elements)):
            build.add(elements[element], [subset], 0.0)
    for name in elements:
        build.add(name, [], 4.0)
    return elements


def _tensors(size: int, build: _Builder) -> list[str]:
    problem = planted(100 * size, int(build.random.integers(1_000)), "rings").problem
    for node in range(problem.n_nodes):
        children = [str(child) for child in problem.children(node).tolist()]
        build.add(str(problem.node_class[node]), children, float(problem.cost_us[node]))
    return [str(problem.root)]


_FAMILIES: dict[str, Callable[[int, _Builder], list[str]]] = {
    "sums": _sums,
    "logic": _logic,
    "expressions": _expressions,
    "lanes": _lanes,
    "covers": _covers,
    "tensors": _tensors,
}


def generated_names() -> list[str]:
    """Return the names of all of them: family and size."""
    return [f"{family}-{size:02}" for size, family in map(_size_and_family, range(COUNT))]


def generated(name: str) -> dict[str, Any]:
    """Return the content of one of them; always the same."""
    index = generated_names().index(name)
    size, family = _size_and_family(index)
    build = _Builder(np.random.default_rng(index))
    roots = _FAMILIES[family](size, build)
    return build.content(roots)


def _size_and_family(index: int) -> tuple[int, str]:
    return 1 + index // len(_FAMILIES), list(_FAMILIES)[index % len(_FAMILIES)]


def write_generated(folder: Path) -> None:
    """Write all of them into a folder, where they are not there yet.

    Raises:
        InputError: it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in generated_names():
        path = folder / f"{name}.json"
        if not path.exists():
            with write_aside(path) as aside:
                (aside / path.name).write_text(json.dumps(generated(name)), encoding="utf-8")
