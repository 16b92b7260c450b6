"""The values of all e-nodes in machine arithmetic: whether those of a class agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from relational_tensat.egraph.egraph import EGraph
from relational_tensat.tensor import Array
from relational_tensat.tensor.machine import computed, held


def disagreements(egraph: EGraph, inputs: Mapping[str, Array], tolerance: float) -> list[str]:
    """Return the e-nodes that compute something else than the original node of their class.

    Args:
        inputs: the values of inputs, in their types; weights have data.
        tolerance: how far two floats may be apart, relative to the largest of a tensor.
    """
    rows = egraph.database.execute(
        "SELECT class, signature, c0, c1, c2, c3, c4, iteration FROM enode"
        " WHERE NOT filtered ORDER BY iteration, id"
    )
    values: dict[int, Any] = {}
    wrong: list[str] = []
    waiting = list(rows)
    while waiting:
        unready = []
        for row in waiting:
            children = [child for child in row[2:7] if child]
            if any(child not in values for child in children):
                unready.append(row)
                continue
            value = _value(egraph, row[1], [values[child] for child in children], inputs)
            if row[0] not in values:
                values[row[0]] = value
            elif not _agree(values[row[0]], value, tolerance):
                symbol = egraph.catalogue.symbol_of(row[1])
                wrong.append(f"{symbol.op} {dict(symbol.attrs)}: {value}, not {values[row[0]]}")
        assert len(unready) < len(waiting)
        waiting = unready
    return wrong


def _value(egraph: EGraph, signature: int, operands: list[Any], inputs: Mapping[str, Array]) -> Any:
    symbol = egraph.catalogue.symbol_of(signature)
    attrs, kind = dict(symbol.attrs), egraph.catalogue.type_of(signature)
    if symbol.op in ("input", "weight"):
        name = str(attrs["name"])
        data = inputs[name] if symbol.op == "input" else egraph.graph.weights[name].data
        return held(data, kind)
    with np.errstate(all="ignore"):
        types = egraph.catalogue.operand_types(signature)
        return computed(symbol.op, operands, types, attrs, kind)


def _agree(first: Any, second: Any, tolerance: float) -> bool:
    if isinstance(first, tuple):
        return all(_agree(a, b, tolerance) for a, b in zip(first, second, strict=True))
    if first.dtype.kind != "f":
        return bool(np.array_equal(first, second))
    finite = np.isfinite(first)
    if not np.array_equal(finite, np.isfinite(second)):
        return False
    scale = float(np.abs(first[finite]).max(initial=0.0))
    return bool((np.abs(first[finite] - second[finite]) <= tolerance * scale).all())
