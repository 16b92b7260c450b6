"""How many nodes a model has once its local functions are in the place of their calls."""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from relational_tensat.base.errors import ModelError

#: A model of few bytes may have more than can be counted: each function calls the next one twice.
MOST_NODES = 1_000_000

_Key = tuple[str, str, str]


def check_calls(model: onnx.ModelProto, where: str) -> None:
    """Check that a model has an end, and so many nodes as can be read, before anything goes into its calls.

    Raises:
        ModelError: it has more, or a function calls itself.
    """
    if not model.functions:
        return
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    counts: dict[_Key, int] = {}
    for key in _callees_first(functions, where):
        counts[key] = _count(functions[key].node, counts)
    total = _count(model.graph.node, counts)
    if total > MOST_NODES:
        shown = (
            f"{total:,}"
            if total < 1e15
            else f"{float(total):.1e}"
            if total < 1e300
            else "countless"
        )
        raise ModelError(
            f"{where}: {shown} nodes with its local functions in place of their calls, "
            f"the limit is {MOST_NODES:,}"
        )


def _callees_first(functions: dict[_Key, onnx.FunctionProto], where: str) -> list[_Key]:
    """Return the functions in an order in which each comes after those that it calls."""
    done: dict[_Key, None] = {}
    for first in functions:
        path: list[tuple[_Key, list[_Key]]] = [(first, _called(functions, first))]
        while path:
            key, callees = path[-1]
            if key in done or not callees:
                done[key] = None
                path.pop()
                continue
            callee = callees.pop()
            if any(callee == before for before, _ in path):
                raise ModelError(f"{where}: the local function {callee[1]!r} calls itself")
            if callee not in done:
                path.append((callee, _called(functions, callee)))
    return list(done)


def _called(functions: dict[_Key, onnx.FunctionProto], key: _Key) -> list[_Key]:
    return list(dict.fromkeys(_calls(functions[key].node, functions)))


def _calls(
    nodes: Iterable[onnx.NodeProto], functions: dict[_Key, onnx.FunctionProto]
) -> Iterable[_Key]:
    for node in nodes:
        key = (node.domain, node.op_type, node.overload)
        if key in functions:
            yield key
        for body in _bodies(node):
            yield from _calls(body.node, functions)


def _count(nodes: Iterable[onnx.NodeProto], counts: dict[_Key, int]) -> int:
    return sum(
        counts.get((node.domain, node.op_type, node.overload), 1)
        + sum(_count(body.node, counts) for body in _bodies(node))
        for node in nodes
    )


def _bodies(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    return [graph for a in node.attribute for graph in ([a.g] if a.HasField("g") else a.graphs)]
