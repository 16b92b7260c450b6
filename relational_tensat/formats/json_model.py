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
"""

from __future__ import annotations

import math

FORMAT = "relational_tensat.graph"
VERSION = 1

#: How numbers that JSON does not have are written.
NON_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def encode_float(value: float) -> float | str:
    """Return a number as JSON has it: itself, or its name when it is not finite."""
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
