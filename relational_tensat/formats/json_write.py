"""Writing the JSON form of a tensor graph (see ``json_model``)."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from relational_tensat.base.files import write_aside
from relational_tensat.formats.json_model import FORMAT, VERSION
from relational_tensat.formats.json_values import encode_attr, encode_data
from relational_tensat.tensor import Graph, Node, TensorType, Weight


def write_json(graph: Graph, path: Path) -> None:
    """Write a graph, completely or not at all.

    Raises:
        InputError: the file cannot be written.
    """
    with write_aside(path) as aside, (aside / path.name).open("w", encoding="utf-8") as file:
        _write(graph, file)


def graph_text(graph: Graph) -> str:
    """Return what ``write_json`` writes; ``json_read.parse_graph`` reads it."""
    file = io.StringIO()
    _write(graph, file)
    return file.getvalue()


def _write(graph: Graph, file: TextIO) -> None:
    file.write(f'{{\n"format": {_text(FORMAT)},\n"version": {VERSION},\n')
    file.write(f'"name": {_text(graph.name)},\n')
    _write_rows(file, "inputs", (_typed(name, kind) for name, kind in graph.inputs.items()))
    _write_rows(file, "weights", (_weight(name, item) for name, item in graph.weights.items()))
    _write_rows(file, "nodes", map(_node, graph.nodes))
    file.write(f'"outputs": {_text(list(graph.outputs))}')
    if graph.metadata:
        file.write(f',\n"metadata": {_text(dict(graph.metadata))}')
    file.write("\n}\n")


def _write_rows(file: TextIO, key: str, rows: Iterator[Mapping[str, Any]]) -> None:
    file.write(f'"{key}": [')
    separator = "\n  "
    for row in rows:
        file.write(separator + _text(row))
        separator = ",\n  "
    file.write("\n],\n")


def _typed(name: str, kind: TensorType) -> dict[str, Any]:
    return {"name": name, "dtype": kind.dtype, "shape": list(kind.shape)}


def _weight(name: str, weight: Weight) -> dict[str, Any]:
    row = _typed(name, weight.type)
    if weight.data is not None:
        row["data"] = encode_data(weight.data)
    return row


def _node(node: Node) -> dict[str, Any]:
    row: dict[str, Any] = {
        "op": node.op,
        "inputs": list(node.inputs),
        "outputs": list(node.outputs),
        "attrs": {key: encode_attr(value) for key, value in node.attrs.items()},
    }
    if node.name:
        row["name"] = node.name
    return row


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
