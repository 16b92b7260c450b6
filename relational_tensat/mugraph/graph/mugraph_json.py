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
from relational_tensat.mugraph.graph.json_fields import Fields
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
#: The keys that objects may have.
_GRAPH = ("format", "name", "inputs", "steps", "outputs", "conditions", "rows")
_KERNEL = ("kernel", "grid", "loop", "iterators", "steps", "savers")
_ITERATOR = ("tensor", "output", "imap", "fmap", "windows", "condition")
_SAVER = ("tile", "output", "dims", "omap", "wide")


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
        return _decoded_graph(Fields(document, "the μGraph", _GRAPH))
    except RelationalTensatError as error:
        raise InputError(f"{where}: {error}") from error
    except KeyError as error:
        raise InputError(f"{where}: the key {error} is missing") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{where}: no μGraph: {error}") from error


def _decoded_graph(content: Fields) -> MuGraph:
    of_inputs = Fields(content.value("inputs"), "inputs")
    inputs = {name: dims_of(of_inputs.text(name)) for name in content.value("inputs")}
    steps = tuple(
        _decoded_kernel_step(step, f"step {place}")
        for place, step in enumerate(content.items("steps"))
    )
    outputs = content.texts("outputs")
    rows = tuple(
        found_row(row, f"row {place}") for place, row in enumerate(content.items("rows", []))
    )
    conditions = frozenset(content.texts("conditions", []))
    graph = MuGraph(content.text("name"), inputs, steps, outputs, rows, conditions)
    kernel_tensors(graph)
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


def _decoded_kernel_step(content: Any, where: str) -> KernelStep:
    if not isinstance(content, Mapping) or "kernel" not in content:
        return _operation(content, where)
    name = Fields(content, where).text("kernel")
    return Kernel(name, _decoded_block(Fields(content, name, _KERNEL)))


def _decoded_block(kernel: Fields) -> BlockGraph:
    where = kernel.where
    iterators = tuple(
        _decoded_iterator(Fields(it, f"{where}: iterator {place}", _ITERATOR))
        for place, it in enumerate(kernel.items("iterators"))
    )
    savers = tuple(
        _decoded_saver(Fields(saver, f"{where}: saver {place}", _SAVER))
        for place, saver in enumerate(kernel.items("savers"))
    )
    steps = tuple(
        _decoded_block_step(step, f"{where}: step {place}")
        for place, step in enumerate(kernel.items("steps"))
    )
    return BlockGraph(kernel.wholes("grid"), kernel.whole("loop"), iterators, steps, savers)


def _decoded_iterator(it: Fields) -> Iterator:
    windows = tuple(Window.of(_attrs(window, it.where)) for window in it.items("windows", []))
    return Iterator(
        it.text("tensor"), it.text("output"), it.texts("imap"), it.text("fmap"), windows,
        it.flag("condition"),
    )  # fmt: skip


def _decoded_saver(saver: Fields) -> Saver:
    dims, omap = dims_of(saver.text("dims")), saver.texts("omap")
    return Saver(saver.text("tile"), saver.text("output"), dims, omap, saver.flag("wide"))


def _decoded_block_step(content: Any, where: str) -> BlockStep:
    for key, decode in _BLOCK_STEPS.items():
        if isinstance(content, Mapping) and key in content:
            return decode(content, where)
    return _operation(content, where)


def _thread(content: Any, where: str) -> ThreadGraph:
    thread = Fields(content, where, ("thread", "outputs"))
    steps = tuple(_operation(step, f"{where}: thread") for step in thread.items("thread"))
    return ThreadGraph(steps, thread.texts("outputs"))


def _running_max(content: Any, where: str) -> RunningMax:
    step = Fields(content, where, ("running_max", "output", "over"))
    return RunningMax(step.text("running_max"), step.text("output"), step.texts("over"))


def _accumulate(content: Any, where: str) -> Accumulate:
    known = ("accumulate", "operand", "output", "along", "rescale", "epsilon")
    step = Fields(content, where, known)
    return Accumulate(
        step.text("operand"),
        step.text("output"),
        step.text("accumulate"),
        step.texts("along"),
        step.text("rescale"),
        step.number("epsilon"),
    )


_BLOCK_STEPS: Mapping[str, Callable[[Any, str], BlockStep]] = {
    "thread": _thread,
    "running_max": _running_max,
    "accumulate": _accumulate,
}


def _operation(content: Any, where: str) -> Operation:
    step = Fields(content, where, ("op", "operands", "output", "attrs"))
    attrs = _attrs(step.value("attrs", {}), where)
    return Operation(step.text("op"), step.texts("operands"), step.text("output"), attrs)


def _attrs(content: Any, where: str) -> Attrs:
    fields = Fields(content, f"{where}: attrs")
    return {name: _value(fields.value(name), f"{where}: {name}") for name in content}


def _encoded_window(window: Window) -> dict[str, Any]:
    return {name: _encoded_value(value) for name, value in window.attrs.items()}


def _encoded_value(value: AttrValue) -> Any:
    return [_encoded_value(item) for item in value] if isinstance(value, tuple) else value


def _value(value: Any, where: str) -> AttrValue:
    if isinstance(value, list):
        return tuple(_value(each, where) for each in value)
    if isinstance(value, (bool, int, float, str)) and value == value:  # not NaN
        return value
    raise InputError(f"{where}: {value!r} is no attribute")
