"""Weights of an ONNX message, taken out of it and put into it without parsing them.

Protobuf copies every field that it parses and writes. A model's weights are nearly all of its bytes, so
they are left out of what protobuf sees: a *skeleton* is the model with ``PLACEHOLDER`` in place of the
data of each large initializer. The format: https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import onnx

#: From this size on, an initializer's data is left out of a skeleton.
LARGE_BYTES = 1 << 20
#: Stands for the data of a large initializer: a tensor without any would not be valid.
PLACEHOLDER = b"\0"

# Numbers of fields in onnx.proto.
_MODEL_GRAPH, _GRAPH_INITIALIZER, _TENSOR_NAME, _TENSOR_RAW_DATA = 7, 5, 8, 9

_LONGEST_VARINT = 10


class WireError(ValueError):
    """Bytes that are no protobuf message."""


class WireRegion(NamedTuple):
    """Bytes of a buffer."""

    start: int
    stop: int

    @property
    def n_bytes(self) -> int:
        """How many they are."""
        return self.stop - self.start


class _Field(NamedTuple):
    """A field of a message: its number, all of it, and its content (of fields with a length)."""

    number: int
    whole: WireRegion
    content: WireRegion


def without_large_weights(message: memoryview) -> tuple[bytes, dict[str, WireRegion]]:
    """Return the skeleton of a serialized model, and where the data of its large initializers is.

    Returns:
        The skeleton's bytes, and a region of ``message`` for each large initializer, by name.

    Raises:
        WireError: the message is malformed.
    """
    regions: dict[str, WireRegion] = {}

    def leave_out(tensor: WireRegion) -> list[memoryview] | None:
        fields = list(_fields(message, tensor))
        data = next((f for f in fields if f.number == _TENSOR_RAW_DATA), None)
        if data is None or data.content.n_bytes < LARGE_BYTES:
            return None
        name = _text(message, [f.content for f in fields if f.number == _TENSOR_NAME])
        if name in regions:
            raise WireError(f"the initializer {name!r} is there twice")
        regions[name] = data.content
        return [
            message[tensor.start : data.whole.start],
            *_length_field(_TENSOR_RAW_DATA, [memoryview(PLACEHOLDER)]),
            message[data.whole.stop : tensor.stop],
        ]

    whole = WireRegion(0, len(message))
    chunks = _rewritten(message, whole, (_MODEL_GRAPH, _GRAPH_INITIALIZER), leave_out)
    return b"".join(chunks), regions


def with_large_weights(model: onnx.ModelProto, data: Mapping[str, memoryview]) -> list[memoryview]:
    """Return what a model's file consists of, in order: the skeleton's bytes and its weights.

    Args:
        model: a skeleton.
        data: of the large initializers, by name.
    """
    message = memoryview(model.SerializeToString())

    def fill_in(tensor: WireRegion) -> list[memoryview] | None:
        proto = onnx.TensorProto.FromString(message[tensor.start : tensor.stop])
        if proto.name not in data:
            return None
        proto.ClearField("raw_data")
        return [
            memoryview(proto.SerializeToString()),
            *_length_field(_TENSOR_RAW_DATA, [data[proto.name]]),
        ]

    return _rewritten(
        message, WireRegion(0, len(message)), (_MODEL_GRAPH, _GRAPH_INITIALIZER), fill_in
    )


def _rewritten(
    message: memoryview,
    region: WireRegion,
    path: tuple[int, ...],
    rewrite: Callable[[WireRegion], list[memoryview] | None],
) -> list[memoryview]:
    """Return a message with other content in the fields at ``path``; None from ``rewrite`` keeps one."""
    chunks: list[memoryview] = []
    kept_from = region.start
    number, *below = path
    for field in _fields(message, region):
        if field.number != number:
            continue
        content = (
            _rewritten(message, field.content, tuple(below), rewrite)
            if below
            else rewrite(field.content)
        )
        if content is not None:
            chunks.append(message[kept_from : field.whole.start])
            chunks += _length_field(number, content)
            kept_from = field.whole.stop
    chunks.append(message[kept_from : region.stop])
    return chunks


def _fields(message: memoryview, region: WireRegion) -> Iterator[_Field]:
    position = region.start
    while position < region.stop:
        start = position
        tag, position = _varint(message, position, region.stop)
        content = position
        match tag & 7:
            case 0:  # a varint
                _, position = _varint(message, position, region.stop)
            case 1:
                position += 8
            case 2:  # bytes, text or a message, after their length
                n_bytes, content = _varint(message, position, region.stop)
                position = content + n_bytes
            case 5:
                position += 4
            case kind:
                raise WireError(f"field of kind {kind} at byte {start}")
        if position > region.stop:
            raise WireError(f"the field at byte {start} ends behind its message")
        yield _Field(tag >> 3, WireRegion(start, position), WireRegion(content, position))


def _varint(message: memoryview, position: int, stop: int) -> tuple[int, int]:
    """Return the number at a position, and the position behind it."""
    value = 0
    for index, byte in enumerate(message[position : min(stop, position + _LONGEST_VARINT)]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position + index + 1
    raise WireError(f"no number at byte {position}")


def _length_field(number: int, content: list[memoryview]) -> list[memoryview]:
    n_bytes = sum(chunk.nbytes for chunk in content)
    return [memoryview(_to_varint(number << 3 | 2) + _to_varint(n_bytes)), *content]


def _to_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _text(message: memoryview, regions: list[WireRegion]) -> str:
    """Return the last of several texts, as protobuf does; "" without any."""
    if not regions:
        return ""
    try:
        return bytes(message[regions[-1].start : regions[-1].stop]).decode()
    except UnicodeDecodeError as error:
        raise WireError(str(error)) from None
