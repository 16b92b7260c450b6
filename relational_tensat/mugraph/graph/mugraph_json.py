"""μGraphs as JSON, out and in: one object, each step with its kind, maps as lists of index variables."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from relational_tensat.base.errors import InputError, RelationalTensatError
from relational_tensat.mugraph.graph.dims import dims_of, text_of
from relational_tensat.mugraph.graph.found_row import found_row
from relational_tensat.mugraph.graph.input_windows import Window
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    BlockStep,
    Iterator,
    Kernel,
    KernelStep,
    MuGraph,
    Operation,
    RunningMax,
    Saver,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.tensor.types import Attrs, AttrValue

FORMAT = "relational_tensat μGraph 1"


def encoded(graph: MuGraph) -> dict[str, Any]:
    """Return a μGraph as JSON's objects, arrays, texts and numbers."""
    return {
        "format": FORMAT,
        "name": graph.name,
        "inputs": {name: text_of(dims) for name, dims in graph.inputs.items()},
        "steps": [_encoded_step(step) for step in graph.steps],
        "outputs": list(graph.outputs),
    } | _encoded_options(graph)


def _encoded_options(graph: MuGraph) -> dict[str, Any]:
    """Return what few μGraphs have."""
    options: dict[str, Any] = {}
    if graph.conditions:
        options["conditions"] = sorted(graph.conditions)
    if graph.rows:
        options["rows"] = [row.content() for row in graph.rows]
    return options


def content_hash(graph: MuGraph) -> str:
    """Return a hash of what a μGraph computes and how, whatever it is called."""
    content = {k: value for k, value in encoded(graph).items() if k not in ("name", "rows")}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def decoded(document: Any, where: str) -> MuGraph:
    """Return the μGraph of a JSON document, checked.

    Raises:
        InputError: it is malformed; says where, and what was expected.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f"{where}: expected an object whose format is {FORMAT!r}")
    try:
        inputs = {str(name): dims_of(str(text)) for name, text in document["inputs"].items()}
        steps = tuple(_decoded_kernel_step(step) for step in document["steps"])
        rows = tuple(map(found_row, document.get("rows", ())))
        conditions = frozenset(_texts(document.get("conditions", [])))
        outputs = _texts(document["outputs"])
        graph = MuGraph(str(document["name"]), inputs, steps, outputs, rows, conditions)
        kernel_tensors(graph)
    except RelationalTensatError as error:
        raise InputError(f"{where}: {error}") from error
    except KeyError as error:
        raise InputError(f"{where}: the key {error} is missing") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{where}: no μGraph: {error}") from error
    return graph


def _encoded_step(step: KernelStep | BlockStep) -> dict[str, Any]:
    match step:
        case Operation():
            attrs = {name: _encoded_value(value) for name, value in step.attrs.items()}
            return {"op": step.op, "operands": list(step.operands), "output": step.output} | (
                {"attrs": attrs} if attrs else {}
            )
        case Kernel():
            return {"kernel": step.name, **_encoded_block(step.block)}
        case ThreadGraph():
            inner = [_encoded_step(operation) for operation in step.steps]
            return {"thread": inner, "outputs": list(step.outputs)}
        case RunningMax():
            return {"running_max": step.operand, "output": step.output, "over": list(step.over)}
        case Accumulate():
            return {
                "accumulate": step.kind,
                "operand": step.operand,
                "output": step.output,
                "along": list(step.along),
                "rescale": step.rescale,
                "epsilon": step.epsilon,
            }


def _encoded_block(block: BlockGraph) -> dict[str, Any]:
    return {
        "grid": list(block.grid),
        "loop": block.loop,
        "iterators": [
            {"tensor": it.tensor, "output": it.output, "imap": list(it.imap), "fmap": it.fmap}
            | ({"windows": [_encoded_window(w) for w in it.windows]} if it.windows else {})
            | ({"condition": True} if it.is_condition else {})
            for it in block.iterators
        ],
        "steps": [_encoded_step(step) for step in block.steps],
        "savers": [
            {"tile": s.tile, "output": s.output, "dims": text_of(s.dims), "omap": list(s.omap)}
            | ({"wide": True} if s.is_wide else {})
            for s in block.savers
        ],
    }


def _decoded_kernel_step(step: Mapping[str, Any]) -> KernelStep:
    return (
        Kernel(str(step["kernel"]), _decoded_block(step)) if "kernel" in step else _operation(step)
    )


def _decoded_block(step: Mapping[str, Any]) -> BlockGraph:
    iterators = tuple(map(_decoded_iterator, step["iterators"]))
    savers = tuple(map(_decoded_saver, step["savers"]))
    steps = tuple(_decoded_block_step(inner) for inner in step["steps"])
    return BlockGraph(tuple(map(int, step["grid"])), int(step["loop"]), iterators, steps, savers)


def _decoded_iterator(it: Mapping[str, Any]) -> Iterator:
    windows = tuple(
        Window.of({str(name): _value(value) for name, value in window.items()})
        for window in it.get("windows", ())
    )
    return Iterator(
        str(it["tensor"]), str(it["output"]), _texts(it["imap"]), str(it["fmap"]), windows,
        bool(it.get("condition", False)),
    )  # fmt: skip


def _decoded_saver(saver: Mapping[str, Any]) -> Saver:
    dims, omap = dims_of(str(saver["dims"])), _texts(saver["omap"])
    is_wide = bool(saver.get("wide", False))
    return Saver(str(saver["tile"]), str(saver["output"]), dims, omap, is_wide)


def _decoded_block_step(step: Mapping[str, Any]) -> BlockStep:
    for key, decode in _BLOCK_STEPS.items():
        if key in step:
            return decode(step)
    return _operation(step)


def _thread(step: Mapping[str, Any]) -> ThreadGraph:
    return ThreadGraph(tuple(map(_operation, step["thread"])), _texts(step["outputs"]))


def _running_max(step: Mapping[str, Any]) -> RunningMax:
    return RunningMax(str(step["running_max"]), str(step["output"]), _texts(step["over"]))


def _accumulate(step: Mapping[str, Any]) -> Accumulate:
    return Accumulate(
        str(step["operand"]),
        str(step["output"]),
        str(step["accumulate"]),
        _texts(step["along"]),
        str(step["rescale"]),
        float(step["epsilon"]),
    )


_BLOCK_STEPS: Mapping[str, Callable[[Mapping[str, Any]], BlockStep]] = {
    "thread": _thread,
    "running_max": _running_max,
    "accumulate": _accumulate,
}


def _operation(step: Mapping[str, Any]) -> Operation:
    attrs: Attrs = {str(name): _value(value) for name, value in step.get("attrs", {}).items()}
    return Operation(str(step["op"]), _texts(step["operands"]), str(step["output"]), attrs)


def _encoded_window(window: Window) -> dict[str, Any]:
    return {name: _encoded_value(value) for name, value in window.attrs.items()}


def _encoded_value(value: AttrValue) -> Any:
    return [_encoded_value(item) for item in value] if isinstance(value, tuple) else value


def _value(value: Any) -> AttrValue:
    if isinstance(value, list):
        return tuple(map(_value, value))
    if isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{value!r} is no attribute")


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError(f"expected a list of names, not {values!r}")
    return tuple(map(str, values))
