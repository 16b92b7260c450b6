"""Random e-graph files of a million e-nodes: wide ones of twenty layers, deep ones of 100,000.

A layer's classes have two or three e-nodes each, over classes of the layers just below; some e-nodes
cost nothing, and some need a class of a layer above, which makes cycles.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from relational_tensat.base.files import write_aside

SEED = 20261121


@dataclass(frozen=True, slots=True)
class Shape:
    """How an e-graph is laid out.

    Attributes:
        width: classes a layer; None for as many as make twenty layers.
        reach: e-nodes need classes of so many layers just below.
    """

    width: int | None
    reach: int


SHAPES: dict[str, Shape] = {"wide": Shape(None, 1), "deep": Shape(4, 3)}

_LAYERS_OF_WIDE = 20
_MEMBERS = 2.5
"""E-nodes a class, on average."""

_SHARE_OF_CYCLES = 0.05
_SHARE_OF_FREE = 0.2
_MOST_ROOTS = 1_000


def write_egraph(path: Path, shape: str, e_nodes: int) -> None:
    """Write a random e-graph of this shape, one e-node a line.

    Args:
        path: the file.
        shape: a name of ``SHAPES``.
        e_nodes: how many there shall be.
    """
    with write_aside(path) as folder, (folder / path.name).open("w", encoding="utf-8") as file:
        file.writelines(_lines(SHAPES[shape], e_nodes))


def _lines(shape: Shape, e_nodes: int) -> Iterator[str]:
    rng = np.random.default_rng(SEED)
    classes = max(2, int(e_nodes / _MEMBERS))
    width = shape.width or max(1, classes // _LAYERS_OF_WIDE)
    # The first e-node of a class is the first of all, so that children can be named at once.
    owner = np.concatenate([np.arange(classes), rng.integers(0, classes, e_nodes - classes)])
    arity = rng.choice([1, 2, 3], p=[0.3, 0.5, 0.2], size=e_nodes)
    back = rng.integers(1, width * shape.reach + 1, size=(e_nodes, 3))
    back[classes:][rng.random(e_nodes - classes) < _SHARE_OF_CYCLES] *= -1
    cost = np.where(rng.random(e_nodes) < _SHARE_OF_FREE, 0.0, rng.integers(1, 1000, e_nodes) / 64)
    layer_start = (owner // width) * width
    needs = np.clip(layer_start[:, None] - back, -1, classes - 1).tolist()
    yield '{"nodes": {\n'
    for node, (klass, count, children) in enumerate(
        zip(owner.tolist(), arity.tolist(), needs, strict=True)
    ):
        names = [f"n{child}" for child in children[:count] if child >= 0]
        entry = {"op": f"op{node % 97}", "children": names, "eclass": f"c{klass}"}
        end = ",\n" if node + 1 < e_nodes else "\n"
        yield f'"n{node}": {json.dumps(entry | {"cost": float(cost[node])})}{end}'
    top = [f"c{klass}" for klass in range(classes - min(width, _MOST_ROOTS), classes)]
    yield f'}},\n"root_eclasses": {json.dumps(top)},\n"class_data": {{}}\n}}\n'
