"""Attribute values and weight data: from NumPy and Python to JSON and back, exactly."""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any

import numpy as np

from relational_tensat.formats.arrays import uniform_element
from relational_tensat.formats.json_check import JsonPlace
from relational_tensat.formats.json_model import NON_FINITE, encode_float
from relational_tensat.tensor import DTYPE_BYTES, TensorType, numpy_dtype
from relational_tensat.tensor.types import Array, AttrValue

#: Longest weight that is written as numbers; longer ones are base64.
_MAX_NUMBERS = 16


def encode_attr(value: AttrValue) -> Any:
    """Return an attribute value as JSON: tuples become arrays, non-finite numbers strings."""
    if isinstance(value, tuple):
        return [encode_attr(item) for item in value]
    return encode_float(value) if isinstance(value, float) else value


def decode_attr(place: JsonPlace, kind: str) -> AttrValue:
    """Return the attribute value of the declared kind (see ``Attr``) at a place.

    Raises:
        ModelError: it is of another kind.
    """
    value = place.value
    match kind:
        case "int":
            return place.integer()
        case "float":
            return _number(place)
        case "bool":
            return value if isinstance(value, bool) else place.expected("true or false")
        case "str" | "dtype":
            return place.text()
        case "ints":
            return tuple(item.integer() for item in place.items())
        case "floats":
            return tuple(_number(item) for item in place.items())
        case "padding":
            if value in ("same", "valid"):
                return str(value)
            if not isinstance(value, list):
                place.expected('"same", "valid" or an array of integers')
            return tuple(item.integer() for item in place.items())
        case _:
            return _any_value(place)


def encode_data(array: Array) -> Any:
    """Return weight data as JSON; see ``json_model``."""
    element = uniform_element(array)
    if element is not None and _survives(element):
        return {"fill": _encode_element(element.item())}
    if array.size <= _MAX_NUMBERS and _survives(array):
        return [_encode_element(item) for item in array.reshape(-1).tolist()]
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return {"base64": base64.b64encode(np.ascontiguousarray(little).tobytes()).decode("ascii")}


def decode_data(place: JsonPlace, kind: TensorType) -> Array:
    """Return the weight data at a place, of the declared type and shape.

    Raises:
        ModelError: it is malformed, or its size or its elements do not fit the type.
    """
    if kind.dtype not in DTYPE_BYTES:
        place.fail(f"a weight of element type {kind.dtype} cannot have data")
    dtype = numpy_dtype(kind.dtype)
    if isinstance(place.value, list):
        items = place.items()
        if len(items) != kind.size:
            place.fail(f"{len(items)} numbers, expected {kind.size} for {kind}")
        return np.array([_element(item, dtype) for item in items], dtype).reshape(kind.shape)
    fields = place.fields((), ("fill", "base64"))
    if len(fields) != 1:
        place.expected('an array, {"fill": number} or {"base64": string}')
    if "fill" in fields:
        return np.broadcast_to(np.array(_element(fields["fill"], dtype), dtype), kind.shape)
    return _decode_base64(fields["base64"], dtype, kind)


def _decode_base64(place: JsonPlace, dtype: np.dtype[np.generic], kind: TensorType) -> Array:
    try:
        data = base64.b64decode(place.text(), validate=True)
    except (binascii.Error, ValueError) as error:
        place.fail(f"not base64: {error}")
    expected = kind.size * dtype.itemsize
    if len(data) != expected:
        place.fail(f"{len(data)} bytes, expected {expected} for {kind}")
    if dtype == np.dtype(bool) and any(byte > 1 for byte in set(data)):
        place.fail("a byte other than 0 and 1 in a tensor of bool")
    array = np.frombuffer(data, dtype.newbyteorder("<")).reshape(kind.shape)
    return array.astype(dtype, copy=False)


def _survives(array: Array) -> bool:
    """Whether the elements can be written as JSON numbers (a NaN's bits cannot)."""
    return array.dtype.kind != "f" or not bool(np.isnan(array).any())


def _encode_element(value: Any) -> Any:
    return encode_float(value) if isinstance(value, float) else value


def _element(place: JsonPlace, dtype: np.dtype[np.generic]) -> Any:
    if dtype.kind == "b":
        return place.value if isinstance(place.value, bool) else place.expected("true or false")
    if dtype.kind == "f":
        value = _number(place)
        limit = float(np.finfo(str(dtype)).max)
        if math.isfinite(value) and abs(value) > limit:
            place.expected(f"a number that {dtype} can hold")
        return value
    number, info = place.integer(), np.iinfo(str(dtype))
    if not info.min <= number <= info.max:
        place.expected(f"an integer that {dtype} can hold")
    return number


def _number(place: JsonPlace) -> int | float:
    value = place.value
    if isinstance(value, str) and value in NON_FINITE:
        return NON_FINITE[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        place.expected('a number, "inf", "-inf" or "nan"')
    if isinstance(value, float) and not math.isfinite(value):
        place.fail("the number is too large")
    return value


def _any_value(place: JsonPlace) -> AttrValue:
    if isinstance(place.value, list):
        return tuple(_any_value(item) for item in place.items())
    if place.value is None or isinstance(place.value, dict):
        place.expected("a number, a string, true, false or an array of these")
    value: AttrValue = place.value
    return value
