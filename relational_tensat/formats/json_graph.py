"""Reading, validating and writing the JSON form of a tensor graph (see ``json_values``)."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from relational_tensat.base.errors import ShapeError, UsageError, nearest
from relational_tensat.base.files import read_bytes, write_aside
from relational_tensat.formats.json_values import (
    FORMAT,
    VERSION,
    JsonPlace,
    decode_attr,
    decode_data,
    encode_attr,
    encode_data,
    parse_json,
)
from relational_tensat.tensor import DTYPE_BYTES, Graph, Node, TensorType, Weight, build_graph
from relational_tensat.tensor.operators import Operator, operators
from relational_tensat.tensor.types import AttrValue


class JsonFrontend:
    """Reads and writes ``.json`` files."""

    is_onnx = is_binary = False

    def read(self, path: Path, dims: Mapping[str, int]) -> Graph:
        """Read a graph; its dimensions are fixed."""
        graph = parse_graph(read_bytes(path), str(path))
        if dims:
            names = ", ".join(dims)
            raise UsageError(f"{path}: has no dynamic dimensions, but {names} was given")
        return graph

    def write(self, graph: Graph, path: Path, opset: int | None) -> None:
        """Write a graph; operators have no version here."""
        write_json(graph, path)

    def data_files(self, path: Path) -> list[str]:
        """Return none: all is in one file."""
        return []


def write_json(graph: Graph, path: Path) -> None:
    """Write a graph, completely or not at all.

    Raises:
        InputError: the file cannot be written.
    """
    with write_aside(path) as aside, (aside / path.name).open("w", encoding="utf-8") as file:
        _write(graph, file)


def graph_text(graph: Graph) -> str:
    """Return what ``write_json`` writes; ``parse_graph`` reads it."""
    file = io.StringIO()
    _write(graph, file)
    return file.getvalue()


def _write(graph: Graph, file: TextIO) -> None:
    file.write(f'{{\n"format": {_text(FORMAT)},\n"version": {VERSION},\n')
    file.write(f'"name": {_text(graph.name)},\n')
    _write_rows(file, "inputs", (_typed_form(name, kind) for name, kind in graph.inputs.items()))
    _write_rows(file, "weights", (_weight_form(name, item) for name, item in graph.weights.items()))
    _write_rows(file, "nodes", map(_node_form, graph.nodes))
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


def _typed_form(name: str, kind: TensorType) -> dict[str, Any]:
    return {"name": name, "dtype": kind.dtype, "shape": list(kind.shape)}


def _weight_form(name: str, weight: Weight) -> dict[str, Any]:
    row = _typed_form(name, weight.type)
    if weight.data is not None:
        row["data"] = encode_data(weight.data)
    return row


def _node_form(node: Node) -> dict[str, Any]:
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


#: Element types that only pass through opaque nodes: ONNX's others, and what is no tensor.
_OTHER_DTYPES = re.compile(r"opaque:|(string|complex(64|128)|float[48]\w+|u?int[24])$")


def parse_graph(data: bytes, where: str) -> Graph:
    """Return the graph that JSON text gives; ``where`` names it in messages.

    Raises:
        ModelError: it is malformed; names the place and the reason.
    """
    root = parse_json(data, where)
    _check_version(root)
    fields = root.fields(
        ("format", "version", "name", "inputs", "weights", "nodes", "outputs"), ("metadata",)
    )
    inputs: dict[str, TensorType] = {}
    weights: dict[str, Weight] = {}
    for place in fields["inputs"].items():
        name, kind = _typed(place, place.fields(("name", "dtype", "shape"), ()))
        _defined_once(place, name, inputs, weights)
        inputs[name] = kind
    for place in fields["weights"].items():
        name, weight = _weight(place)
        _defined_once(place, name, inputs, weights)
        weights[name] = weight
    nodes = _nodes(fields["nodes"], {**inputs, **weights})
    outputs = [place.name() for place in fields["outputs"].items()]
    metadata: dict[str, str] = {}
    if "metadata" in fields:
        metadata = {key: place.text() for key, place in fields["metadata"].fields().items()}
    name = fields["name"].text()
    return build_graph(name, inputs, weights, nodes, outputs, metadata, where=where)


def _check_version(root: JsonPlace) -> None:
    """Check format and version first: another version may have other keys."""
    fields = root.fields(("format", "version"))
    if fields["format"].value != FORMAT:
        fields["format"].expected(f'"{FORMAT}"')
    version = fields["version"].integer()
    if version != VERSION:
        newer = " (written by a newer release)" if version > VERSION else ""
        fields["version"].fail(f"version {version}{newer} is not supported, expected {VERSION}")


def _typed(place: JsonPlace, fields: dict[str, JsonPlace]) -> tuple[str, TensorType]:
    shape = tuple(item.integer(0) for item in fields["shape"].items())
    return fields["name"].name(), TensorType(_dtype(fields["dtype"]), shape)


def _dtype(place: JsonPlace) -> str:
    dtype = place.name()
    if dtype not in DTYPE_BYTES and not _OTHER_DTYPES.match(dtype):
        place.fail(f"unknown element type {dtype!r}{nearest(dtype, DTYPE_BYTES)}")
    return dtype


def _weight(place: JsonPlace) -> tuple[str, Weight]:
    fields = place.fields(("name", "dtype", "shape"), ("data",))
    name, kind = _typed(place, fields)
    return name, Weight(kind, decode_data(fields["data"], kind) if "data" in fields else None)


def _defined_once(
    place: JsonPlace, name: str, inputs: dict[str, TensorType], weights: dict[str, Weight]
) -> None:
    if name in inputs or name in weights:
        place.fail(f"the value {name!r} is defined twice")


def _nodes(places: JsonPlace, values: dict[str, object]) -> list[Node]:
    """Return the nodes; names and attributes are checked here, types by ``build_graph``."""
    table = operators()
    defined = set(values)
    nodes = []
    for place in places.items():
        node = _node(place, table)
        for output in node.outputs:
            if output in defined:
                place.fail(f"the value {output!r} is defined twice")
            defined.add(output)
        nodes.append(node)
    for place, node in zip(places.items(), nodes, strict=True):
        for index, value in enumerate(node.inputs):
            if value not in defined:
                hint = nearest(value, defined)
                place.fields()["inputs"].items()[index].fail(f"{value!r} is not defined{hint}")
    return nodes


def _node(place: JsonPlace, table: dict[str, Operator]) -> Node:
    fields = place.fields(("op", "inputs", "outputs"), ("attrs", "name"))
    op = fields["op"].text()
    if op not in table:
        fields["op"].fail(f"unknown operator {op!r}{nearest(op, table)}")
    inputs = tuple(item.name() for item in fields["inputs"].items())
    outputs = tuple(item.name() for item in fields["outputs"].items())
    if not outputs:
        fields["outputs"].expected("at least one name")
    attrs = _attrs(fields["attrs"], table[op]) if "attrs" in fields else {}
    name = fields["name"].text() if "name" in fields else ""
    return Node(op, inputs, outputs, attrs, name)


def _attrs(place: JsonPlace, operator: Operator) -> dict[str, AttrValue]:
    """Return the attributes of a node, checked against the operator's declaration."""
    attrs: dict[str, AttrValue] = {}
    for key, item in place.fields().items():
        if key not in operator.declared:
            hint = nearest(key, operator.declared)
            item.fail(f"{operator.name} has no attribute {key!r}{hint}")
        attrs[key] = decode_attr(item, operator.declared[key].kind)
    try:
        operator.normalize(attrs)
    except ShapeError as error:
        place.fail(str(error))
    return attrs


FRONTEND = JsonFrontend()
