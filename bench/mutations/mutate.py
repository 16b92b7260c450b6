"""Damaging files at random: bytes of any file, fields of ONNX models, tokens of texts."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import TypeAlias

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it ships no types
from onnx import AttributeProto

#: Makes another content of a file's.
Mutation: TypeAlias = Callable[[bytes, random.Random], bytes]

#: Sizes, axes and counts that programs do not expect.
_INTEGERS = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 7, 255, 2**31, 10**10, 2**62, 2**63 - 1)
_TEXTS = ("", "0", "-1", "1e400", "NaN", "null", "[]", "{}", '"', "(", ")", "9" * 40, "\x00", "é")
_TOKEN = re.compile(rb"-?\d+(?:\.\d+)?|\w+|[^\w\s]")


def mutated(content: bytes, kind: str, rng: random.Random) -> bytes:
    """Return a file's content with one to three things changed.

    Args:
        kind: ``onnx``, ``text`` or ``bytes``: what can be changed beside single bytes.
    """
    mutations: tuple[Mutation, ...] = {
        "onnx": (*_BYTES, *_ONNX, *_ONNX, *_ONNX),
        "text": (*_BYTES, *_TOKENS, *_TOKENS),
        "bytes": _BYTES,
    }[kind]
    for _ in range(rng.randint(1, 3)):
        content = rng.choice(mutations)(content, rng)
    return content


def _flip_bits(content: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        if damaged:
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def _truncate(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _overwrite(content: bytes, rng: random.Random) -> bytes:
    start, end = _range(content, rng)
    return content[:start] + bytes([rng.choice((0, 255))]) * (end - start) + content[end:]


def _remove(content: bytes, rng: random.Random) -> bytes:
    start, end = _range(content, rng)
    return content[:start] + content[end:]


def _repeat(content: bytes, rng: random.Random) -> bytes:
    start, end = _range(content, rng)
    return content[:end] + content[start:end] + content[end:]


def _range(content: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(len(content) + 1)
    return start, min(len(content), start + rng.choice((1, 4, 16, 256)))


def _replace_token(content: bytes, rng: random.Random) -> bytes:
    tokens = list(_TOKEN.finditer(content))
    if not tokens:
        return content
    old = rng.choice(tokens)
    new = rng.choice(
        (
            str(rng.choice(_INTEGERS)).encode(),
            rng.choice(_TEXTS).encode(),
            rng.choice(tokens).group(),
        )
    )
    return content[: old.start()] + new + content[old.end() :]


def _remove_token(content: bytes, rng: random.Random) -> bytes:
    tokens = list(_TOKEN.finditer(content))
    if not tokens:
        return content
    old = rng.choice(tokens)
    return content[: old.start()] + content[old.end() :]


def _on_model(change: Callable[[onnx.GraphProto, random.Random], None]) -> Mutation:
    def mutation(content: bytes, rng: random.Random) -> bytes:
        try:
            model = onnx.load_model_from_string(content)
        except DecodeError:
            return content
        change(model.graph, rng)
        changed: bytes = model.SerializeToString()
        return changed

    return mutation


def _change_attribute(graph: onnx.GraphProto, rng: random.Random) -> None:
    attributes = [attribute for node in graph.node for attribute in node.attribute]
    if not attributes:
        return
    attribute = rng.choice(attributes)
    if attribute.type == AttributeProto.INT:
        attribute.i = rng.choice(_INTEGERS)
    elif attribute.type == AttributeProto.INTS:
        _change_integers(attribute.ints, rng)
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f = rng.choice((0.0, -1.0, 1e38, float("nan"), float("inf")))
    elif attribute.type == AttributeProto.STRING:
        attribute.s = rng.choice((b"", b"x", b"\xff\xfe", b"SAME_UPPER"))


def _change_integers(values: object, rng: random.Random) -> None:
    """Change, add or drop one of a list's integers."""
    integers = list(values)  # type: ignore[call-overload]  # a repeated field
    place = rng.randrange(len(integers) + 1)
    match rng.randrange(3):
        case 0:
            integers[place : place + 1] = [rng.choice(_INTEGERS)]
        case 1:
            integers.insert(place, rng.choice(_INTEGERS))
        case _:
            del integers[place : place + 1]
    values[:] = integers  # type: ignore[index]  # a repeated field


def _change_tensor(graph: onnx.GraphProto, rng: random.Random) -> None:
    tensors = [*graph.initializer]
    tensors += [a.t for node in graph.node for a in node.attribute if a.type == a.TENSOR]
    if not tensors:
        return
    tensor = rng.choice(tensors)
    match rng.randrange(4):
        case 0:
            tensor.raw_data += rng.randbytes(rng.choice((1, 4, 64)))
        case 1:
            tensor.raw_data = tensor.raw_data[: -rng.choice((1, 4, 8))]
        case 2:
            _change_integers(tensor.dims, rng)
        case _:
            tensor.data_type = rng.randrange(26)


def _change_shape(graph: onnx.GraphProto, rng: random.Random) -> None:
    values = [*graph.input, *graph.output]
    if not values:
        return
    value = rng.choice(values)
    dims = value.type.tensor_type.shape.dim
    if dims and rng.random() < 0.8:
        rng.choice(dims).dim_value = rng.choice(_INTEGERS)
    else:
        value.type.tensor_type.elem_type = rng.randrange(26)


def _change_node(graph: onnx.GraphProto, rng: random.Random) -> None:
    if not graph.node:
        return
    node, other = rng.choice(graph.node), rng.choice(graph.node)
    match rng.randrange(6):
        case 0:
            node.op_type = rng.choice(("", "Nothing", other.op_type))
        case 1:
            node.input.append(rng.choice(("", "nowhere", *other.input, *other.output)))
        case 2 if node.input:
            del node.input[rng.randrange(len(node.input))]
        case 3 if node.input:
            node.input[rng.randrange(len(node.input))] = rng.choice(("", *other.output))
        case 4 if node.output:
            node.output[rng.randrange(len(node.output))] = rng.choice(("", *other.output))
        case _:
            node.ClearField("attribute")


_BYTES: tuple[Mutation, ...] = (_flip_bits, _flip_bits, _truncate, _overwrite, _remove, _repeat)
_TOKENS: tuple[Mutation, ...] = (_replace_token, _replace_token, _remove_token)
_ONNX: tuple[Mutation, ...] = tuple(
    map(_on_model, (_change_attribute, _change_tensor, _change_shape, _change_node))
)
