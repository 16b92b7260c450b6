"""From the texts in the tables back to symbols and types: the inverse of what ``catalogue`` writes."""

from __future__ import annotations

import json
import re

from relational_tensat.base.errors import InputError
from relational_tensat.egraph.catalogue import Symbol
from relational_tensat.formats.json_check import JsonPlace
from relational_tensat.formats.json_values import decode_attr
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import TensorType, ValueType

_TENSOR = re.compile(r"([^\s\[\],()]+)\[([\d,]*)\]")


def parse_type(text: str) -> ValueType:
    """Return the type that ``catalogue.type_text`` wrote.

    Raises:
        InputError: it is no such text.
    """
    parts = tuple(
        TensorType(dtype, tuple(int(size) for size in shape.split(",") if size))
        for dtype, shape in _TENSOR.findall(text)
    )
    if text.startswith("("):
        return parts
    if len(parts) != 1:
        raise InputError(f"the type {text!r} in the database, expected one like float32[2,3]")
    return parts[0]


def parse_symbol(op: str, attrs: str, arity: int) -> Symbol:
    """Return the symbol of an operator and the attributes that ``catalogue.attrs_text`` wrote."""
    kinds = {attr.name: attr.kind for attr in get_operator(op).attrs}
    values = json.loads(attrs)
    items = tuple(
        (name, decode_attr(JsonPlace(value, op, name), kinds[name]))
        for name, value in values.items()
    )
    return Symbol(op, items, arity)
