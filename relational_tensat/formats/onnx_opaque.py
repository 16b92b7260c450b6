"""Opaque nodes: an ONNX node as the attributes of an ``opaque`` operator, and back.

The payload is the base64 of the ``NodeProto`` without its name; inputs are called i0, i1, … and
outputs o0, o1, … in it, "" where one is left out. Values that subgraphs use from outside are
further inputs.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import onnx

from relational_tensat.formats.onnx_names import (
    FreshNames,
    all_names,
    all_nodes,
    captured_names,
    rename_node,
    subgraphs,
)
from relational_tensat.formats.onnx_types import is_numeric
from relational_tensat.tensor import TensorType, Weight
from relational_tensat.tensor.types import AttrValue

#: Of constants that are kept with a node.
_MOST_ELEMENTS = 16
_RANDOM = {
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
    "RandomUniformLike",
}  # fmt: skip
#: Domains whose operators are functions of their inputs, apart from those named for randomness.
_PURE_DOMAINS = (
    "", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview.training", "ai.onnx.training", "com.microsoft",
)  # fmt: skip


def encode(
    node: onnx.NodeProto,
    opset: int,
    out_types: Sequence[TensorType],
    constants: Mapping[str, Weight] = MappingProxyType({}),
    *,
    keep: bool = False,
) -> dict[str, AttrValue]:
    """Return the attributes of the opaque operator that stands for an ONNX node.

    Its inputs are ``input_names(node)``, its outputs those of the node that have a name.

    Args:
        opset: the version of the node's operator set.
        out_types: one for each output that has a name.
        constants: the file's.
        keep: never merge it with its like, nor compute it beforehand.
    """
    bare = onnx.NodeProto()
    bare.CopyFrom(node)
    for field in ("name", "doc_string", "metadata_props"):
        bare.ClearField(field)
    count = sum(1 for name in node.input if name)
    captured = captured_names(node)
    names = {name: f"i{count + index}" for index, name in enumerate(captured)}
    reserved = {f"i{index}" for index in range(count + len(captured))}
    inner: set[str] = set()
    for graph in subgraphs(node):
        inner |= all_names(graph)
    mergeable = is_deterministic(node) and not keep
    rename_node(bare, names, reserved, FreshNames(reserved | inner))
    bare.input[:] = _indexed("i", node.input)
    bare.output[:] = _indexed("o", node.output)
    return {
        "op_type": node.op_type,
        "domain": node.domain,
        "opset": opset,
        "payload": base64.b64encode(bare.SerializeToString(deterministic=True)).decode("ascii"),
        "out_types": tuple((kind.dtype, kind.shape) for kind in out_types),
        "constants": tuple(
            (place, tuple(np.ravel(data).tolist()))
            for place, name in enumerate(input_names(node))
            if name in constants and (data := constants[name].data) is not None
            if data.size <= _MOST_ELEMENTS and is_numeric(constants[name].type)
        ),
        "key": "" if mergeable else f"{node.name}:{next(filter(None, node.output))}",
    }


def decode(payload: str) -> onnx.NodeProto:
    """Return the ONNX node of a payload, with its indexed names."""
    return onnx.NodeProto.FromString(base64.b64decode(payload))


def restore(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[str],
    outputs: Sequence[str],
    reserved: Collection[str],
    fresh: FreshNames,
) -> None:
    """Give the nodes that stand for a payload their names, in place.

    Args:
        nodes: the payload's node, or those that it was converted to; indexed names.
        reserved: as for ``rename_node``.
    """
    names = {f"i{index}": name for index, name in enumerate(inputs)}
    names |= {f"o{index}": name for index, name in enumerate(outputs)}
    for node in nodes:
        for name in node.output:  # between the nodes of a conversion
            if name and name not in names:
                names[name] = fresh.new(f"{outputs[0]}/{name}")
        rename_node(node, names, reserved, fresh)


def input_names(node: onnx.NodeProto) -> tuple[str, ...]:
    """Return all values that a node takes: its inputs, then what its subgraphs use from outside."""
    return (*(name for name in node.input if name), *captured_names(node))


def is_deterministic(node: onnx.NodeProto) -> bool:
    """Whether a node gives the same for the same inputs; False if unknown."""
    return all(_is_pure(inner) for inner in all_nodes([node]))


def _is_pure(node: onnx.NodeProto) -> bool:
    if node.domain not in _PURE_DOMAINS or node.op_type in _RANDOM:
        return False
    if node.domain == "com.microsoft":
        return not any(word in node.op_type for word in ("Random", "Dropout", "Sampl"))
    # From version 12 on a third input switches training; without it Dropout is the identity.
    return node.op_type != "Dropout" or len(node.input) < 3 or not node.input[2]


def _indexed(letter: str, names: Sequence[str]) -> list[str]:
    indices = iter(range(len(names)))
    return [f"{letter}{next(indices)}" if name else "" for name in names]
