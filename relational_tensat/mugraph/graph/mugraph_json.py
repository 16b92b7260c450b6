"""μGraphs as JSON, out and in, and their files, perhaps compressed.

A graph is one object, each step with its kind, maps as lists of index variables. People may have edited it:
each field has the expected type, and all fields are read. A file may have Mirage's JSON, too, one graph or
a list.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

from relational_tensat.base.errors import InputError, RelationalTensatError, nearest
from relational_tensat.base.files import whole_content
from relational_tensat.mugraph.graph.dims import Window, dims_of, text_of
from relational_tensat.mugraph.graph.mirage_reader import from_mirage
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    BlockStep,
    FoundRow,
    InputIterator,
    Kernel,
    KernelStep,
    MuGraph,
    Operation,
    RunningMax,
    Saver,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.tensor.types import Attrs, AttrValue

_REQUIRED: Any = object()


class Fields:
    """An object of a document that people may have edited: its fields are checked as they are read.

    Args:
        content: the object's values.
        where: its place, for errors.
        known: the keys that it may have; ``None`` where each is a name.

    Raises:
        InputError: it is no object, or has a key that it cannot have.
    """

    def __init__(self, content: Any, where: str, known: Sequence[str] | None = None) -> None:
        if not isinstance(content, Mapping):
            raise InputError(f"{where}: expected an object, not {_shown(content)}")
        self.where = where
        self._content = content
        for key in content:
            if known is not None and key not in known:
                raise InputError(f"{where}: unknown key {key!r}{nearest(key, known)}")

    def value(self, key: str, default: Any = _REQUIRED) -> Any:
        """Return the value at a key, of any type."""
        if key not in self._content and default is _REQUIRED:
            raise InputError(f"{self.where}: the key {key!r} is missing")
        return self._content.get(key, default)

    def text(self, key: str) -> str:
        """Return a text."""
        value = self.value(key)
        return value if isinstance(value, str) else self._refuse(key, "a text", value)

    def whole(self, key: str) -> int:
        """Return a whole number."""
        value = self.value(key)
        return int(value) if _is_whole(value) else self._refuse(key, "a whole number", value)

    def number(self, key: str) -> float:
        """Return a finite number."""
        value = self.value(key)
        is_number = _is_whole(value) or (isinstance(value, float) and math.isfinite(value))
        return float(value) if is_number else self._refuse(key, "a finite number", value)

    def flag(self, key: str) -> bool:
        """Return true or false; a missing field is false."""
        value = self.value(key, False)
        return value if isinstance(value, bool) else self._refuse(key, "true or false", value)

    def items(self, key: str, default: Any = _REQUIRED) -> list[Any]:
        """Return a list."""
        value = self.value(key, default)
        return value if isinstance(value, list) else self._refuse(key, "a list", value)

    def texts(self, key: str, default: Any = _REQUIRED) -> tuple[str, ...]:
        """Return a list of names."""
        values = self.value(key, default)
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            self._refuse(key, "a list of names", values)
        return tuple(values)

    def wholes(self, key: str) -> tuple[int, ...]:
        """Return a list of whole numbers."""
        values = self.value(key)
        if not isinstance(values, list) or not all(map(_is_whole, values)):
            self._refuse(key, "a list of whole numbers", values)
        return tuple(values)

    def _refuse(self, key: str, expected: str, value: Any) -> NoReturn:
        raise InputError(f"{self.where}: {key}: expected {expected}, not {_shown(value)}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


FORMAT = "relational_tensat μGraph 1"
#: The keys that objects may have.
_GRAPH = ("format", "name", "inputs", "steps", "outputs", "conditions", "rows")
_KERNEL = ("kernel", "grid", "loop", "iterators", "steps", "savers")
_ITERATOR = ("tensor", "output", "imap", "fmap", "windows", "condition")
_SAVER = ("tile", "output", "dims", "omap", "wide")


def encoded(graph: MuGraph) -> dict[str, Any]:
    """Return a μGraph as JSON's objects, arrays, texts and numbers."""
    options: dict[str, Any] = {}  # that few have
    if graph.conditions:
        options["conditions"] = sorted(graph.conditions)
    if graph.rows:
        options["rows"] = [row.content() for row in graph.rows]
    return {
        "format": FORMAT,
        "name": graph.name,
        "inputs": {name: text_of(dims) for name, dims in graph.inputs.items()},
        "steps": [_encoded_step(step) for step in graph.steps],
        "outputs": list(graph.outputs),
    } | options


def content_hash(graph: MuGraph, quantized: Mapping[str, str] | None = None) -> str:
    """Return a hash of a μGraph's meaning and form, without its names.

    Args:
        graph: the μGraph.
        quantized: element types of tensors that are integers in memory.
    """
    content = {k: value for k, value in encoded(graph).items() if k not in ("name", "rows")}
    content |= {"quantized": dict(quantized)} if quantized else {}
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
        _found_row(row, f"row {place}") for place, row in enumerate(content.items("rows", []))
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


def _decoded_iterator(it: Fields) -> InputIterator:
    windows = tuple(Window.of(_attrs(window, it.where)) for window in it.items("windows", []))
    return InputIterator(
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


def _found_row(content: Any, where: str) -> FoundRow:
    """Return the row of a JSON object.

    Raises:
        InputError: it is not one; ``where`` it stands, and what was expected.
    """
    row = Fields(content, where, tuple(field.name for field in fields(FoundRow)))
    return FoundRow(
        row.text("kernel"), row.text("tensor"), row.whole("level"), row.whole("config"),
        row.whole("term"), row.whole("operators"), row.text("stage"), row.text("op"),
        row.text("function"), row.text("variable"), row.whole("a"), row.whole("b"),
        row.whole("abstract_class"), row.whole("fingerprint"), row.whole("derivations"),
    )  # fmt: skip


def _load_mugraphs(path: Path) -> list[MuGraph]:
    """Return the μGraphs of a file, of whichever of the two formats.

    Raises:
        InputError: it cannot be read, is no JSON, or a graph in it is malformed.
    """
    document = _read_json(path)
    if not isinstance(document, list):
        return [decoded(document, str(path))]
    name = path.name.removesuffix(".gz").removesuffix(".json")
    is_one = all(isinstance(part, dict) for part in document)
    graphs = []
    for place, one in enumerate([document] if is_one else document):
        try:
            graphs.append(from_mirage(one, name))
        except InputError as error:
            raise InputError(f"{path}: graph {place}: {error}") from error
    return graphs


def load_mugraph(path: Path, place: int = 0) -> MuGraph:
    """Return one μGraph of a file.

    Raises:
        InputError: as ``_load_mugraphs``, or the file has no graph at that place.
    """
    graphs = _load_mugraphs(path)
    if place >= len(graphs):
        raise InputError(f"{path}: no graph {place}, the file has {len(graphs)}")
    return graphs[place]


def save_mugraph(graph: MuGraph, path: Path) -> None:
    """Write a μGraph as JSON."""
    text = json.dumps(encoded(graph), indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _read_json(path: Path) -> Any:
    try:
        content = whole_content(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    if not content.strip():
        raise InputError(f"{path}: the file is empty")
    try:
        return json.loads(content)
    except ValueError as error:
        raise InputError(f"{path}: no JSON: {error}") from error
    except RecursionError as error:
        raise InputError(f"{path}: no μGraph: lists within lists, too many") from error
