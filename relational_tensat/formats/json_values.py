"""The JSON form of a tensor graph, version 1.

``model.schema.json`` beside this file is the same as a JSON Schema. By example::

    {
    "format": "relational_tensat.graph",
    "version": 1,
    "name": "example",
    "inputs": [
      {"name": "x", "dtype": "float32", "shape": [1, 3, 8, 8]}
    ],
    "weights": [
      {"name": "w", "dtype": "float32", "shape": [4, 3, 3, 3], "data": {"fill": 0.5}},
      {"name": "b", "dtype": "float32", "shape": [4], "data": [0.0, 1.5, "-inf", 2.0]},
      {"name": "v", "dtype": "float32", "shape": [4, 4, 1, 1]}
    ],
    "nodes": [
      {"op": "conv", "inputs": ["x", "w", "b"], "outputs": ["c"],
       "attrs": {"stride": [1, 1], "pad": "same"}, "name": "first"},
      {"op": "conv", "inputs": ["c", "v"], "outputs": ["y"],
       "attrs": {"stride": [1, 1], "pad": "valid"}}
    ],
    "outputs": ["y"],
    "metadata": {"source": "by hand"}
    }

- ``inputs``, ``weights`` and ``outputs`` are in order; ``nodes`` may be in any order. Each node
  stands on one line when written. ``attrs``, ``name`` and ``metadata`` may be left out.
- ``op`` is an operator of this package, and ``attrs`` has its attributes: numbers, names, true and
  false, and arrays of these. Types of computed values are inferred, not written.
- Weight ``data`` may be left out (only the type is known). It is an array of all elements in
  row-major order, or ``{"fill": number}`` when all are equal, or ``{"base64": "..."}`` with the
  elements' bytes, row-major and little-endian (bfloat16 as float32, bool as one byte).
- Numbers that are not finite are the strings "inf", "-inf" and "nan".
- No other key is allowed, no key may occur twice, and the text is UTF-8.

This file turns attribute values and weight data into JSON and back, exactly. Parsed JSON is read through
``JsonPlace``: every value has a path, and every message names it.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from relational_tensat.base.errors import ModelError, nearest
from relational_tensat.base.records import record
from relational_tensat.formats.arrays import uniform_element
from relational_tensat.tensor import DTYPE_BYTES, TensorType, numpy_dtype
from relational_tensat.tensor.types import Array, AttrValue

FORMAT = "relational_tensat.graph"
VERSION = 1

#: How numbers that JSON does not have are written.
NON_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def _encode_float(value: float) -> float | str:
    """Return a number as JSON has it: itself, or its name when it is not finite."""
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


_KINDS: dict[type, str] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    type(None): "null",
}


@record
class JsonPlace:
    """A JSON value, the file that it stands in, and the path to it (``$.nodes[3].attrs``)."""

    value: Any
    where: str
    path: str = "$"

    def fail(self, reason: str) -> NoReturn:
        """Raise ``ModelError`` for this place."""
        raise ModelError(f"{self.where}: {self.path}: {reason}")

    def expected(self, noun: str) -> NoReturn:
        """Raise ``ModelError``: something else stands here."""
        self.fail(f"{self._shown()}, expected {noun}")

    def text(self) -> str:
        """Return the value, which must be a string."""
        if not isinstance(self.value, str):
            self.expected("a string")
        return self.value

    def name(self) -> str:
        """Return the value, which must be a string that is not empty."""
        if not self.text():
            self.expected("a name")
        return self.text()

    def integer(self, minimum: int | None = None) -> int:
        """Return the value, which must be an integer of at least ``minimum``."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int):
            self.expected("an integer")
        if minimum is not None and value < minimum:
            self.expected(f"an integer of at least {minimum}")
        return value

    def items(self) -> list[JsonPlace]:
        """Return the elements of the value, which must be an array."""
        if not isinstance(self.value, list):
            self.expected("an array")
        return [
            JsonPlace(value, self.where, f"{self.path}[{index}]")
            for index, value in enumerate(self.value)
        ]

    def fields(
        self, required: tuple[str, ...] = (), optional: tuple[str, ...] | None = None
    ) -> dict[str, JsonPlace]:
        """Return the members of the value, which must be an object.

        Args:
            required: keys that must be there.
            optional: the only other keys allowed; None allows any.
        """
        if not isinstance(self.value, dict):
            self.expected("an object")
        for key in required:
            if key not in self.value:
                hint = nearest(key, self.value)
                self.fail(f"the key {key!r} is missing{hint}")
        if optional is not None:
            keys = (*required, *optional)
            for key in self.value:
                if key not in keys:
                    self.fail(f"unknown key {key!r}{nearest(key, keys)}")
        return dict(self._members())

    def _members(self) -> Iterator[tuple[str, JsonPlace]]:
        for key, value in self.value.items():
            dotted = f".{key}" if key.isidentifier() else f"[{json.dumps(key)}]"
            yield key, JsonPlace(value, self.where, self.path + dotted)

    def _shown(self) -> str:
        if isinstance(self.value, dict | list):
            return _KINDS[type(self.value)]
        shown = json.dumps(self.value)
        return shown if len(shown) <= 40 else shown[:37] + "..."


def parse_json(data: bytes, where: str | Path) -> JsonPlace:
    """Parse UTF-8 JSON strictly: no key twice in an object, no NaN or Infinity.

    Raises:
        ModelError: names the file, the byte or line, and what is wrong.
    """
    where = str(where)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(f"{where}: byte {error.start}: not UTF-8 text") from None

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            keys = [key for key, _ in pairs]
            duplicate = next(key for key in keys if keys.count(key) > 1)
            raise ModelError(f"{where}: the key {duplicate!r} occurs twice in one object")
        return result

    def constant(name: str) -> NoReturn:
        raise ModelError(f'{where}: {name} is not JSON; write the string "inf", "-inf" or "nan"')

    try:
        value = json.loads(text, object_pairs_hook=members, parse_constant=constant)
    except json.JSONDecodeError as error:
        end = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        reason = "the text ends too early" if end else error.msg
        raise ModelError(
            f"{where}: line {error.lineno} column {error.colno}: not JSON: {reason}"
        ) from None
    except RecursionError:
        raise ModelError(f"{where}: not a model: arrays or objects are nested too deeply") from None
    except ModelError:
        raise
    except ValueError as error:  # an integer of thousands of digits
        raise ModelError(f"{where}: not a model: {error}") from None
    if "\\u" in text:
        _refuse_surrogates(value, where)
    return JsonPlace(value, where)


def _refuse_surrogates(value: Any, where: str) -> None:
    """Refuse half of a surrogate pair: an escape that JSON allows, but no text can have."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ModelError(f"{where}: a \\u escape is half of a surrogate pair") from None


#: Longest weight that is written as numbers; longer ones are base64.
_MAX_NUMBERS = 16


def encode_attr(value: AttrValue) -> Any:
    """Return an attribute value as JSON: tuples become arrays, non-finite numbers strings."""
    if isinstance(value, tuple):
        return [encode_attr(item) for item in value]
    return _encode_float(value) if isinstance(value, float) else value


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
    """Return weight data as JSON; see the module."""
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
    return _encode_float(value) if isinstance(value, float) else value


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
