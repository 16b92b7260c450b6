"""Configurations and devices as text: the keys of caches and recorded tables.

A configuration's text is a JSON object without spaces. The result's type is not in it, for it follows
from the rest; nor is the name under which an e-graph or a model knows the application:

    {"op":"transpose","attrs":{"perm":[1,0]},"inputs":["float32[64,1024]"],"layout":"row-major"}

An operand that is a tuple of tensors is an array of their types. Where operands are computed that are
usually constants, their numbers follow: ``"computed":[1]``.

A row of a cost cache or of a recorded table adds when it was measured, and with which result.

The identity of a graph's measurements: its configurations at inference, and the hash of its contents.
Graphs of one hash run by the same kernels; names of values do not matter.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from relational_tensat.base.errors import (
    InputError,
    OtherMachineError,
    RelationalTensatError,
    nearest,
)
from relational_tensat.cost.device import (
    Configuration,
    Device,
    DeviceKey,
    TimingSample,
    Unmeasurable,
)
from relational_tensat.formats.json_values import JsonPlace, decode_attr, encode_attr
from relational_tensat.tensor import (
    Array,
    Attrs,
    AttrValue,
    Graph,
    TensorType,
    ValueType,
    tensors_of,
)
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.traits import NO_ACTIVATION
from relational_tensat.tensor.uses import array_digest, inference_nodes, weight_only_values

#: How all operands and results lie in memory.
LAYOUT = "row-major"

_FIELDS = ("op", "attrs", "inputs", "layout")
_COMPUTED = "computed"


def configuration_of(
    op: str,
    inputs: tuple[ValueType, ...],
    output: ValueType,
    attrs: Attrs,
    computed: Collection[int] = (),
) -> Configuration:
    """Return the configuration of one application of an operator.

    An attribute that changes no time is written with the one value of ``Attr.timed_as``: if each value were
    measured, the noise would look like a gain.

    Args:
        attrs: those left out have their defaults; canonical or not.
        computed: the numbers of the operands that are computed at inference; those that no kernel would
            arrange before are left out.

    Raises:
        UsageError: there is no such operator.
        ShapeError: the operator does not take these attributes.
    """
    operator = get_operator(op)
    timed_as = {a.name: a.timed_as for a in operator.attrs if a.timed_as is not None}
    complete = {**operator.canonical(inputs, attrs), **timed_as}
    kinds = {attr.name: attr.kind for attr in operator.attrs}
    items = tuple((name, _one_form(value, kinds[name])) for name, value in complete.items())
    result = tensors_of(output) if operator.multi_output else output  # a graph names single parts
    prepared = operator.prepared_operands(inputs) if computed else ()
    return Configuration(op, inputs, result, items, tuple(n for n in prepared if n in computed))


def as_constants(configuration: Configuration) -> Configuration:
    """Return a configuration whose operands are constants as far as they usually are."""
    return replace(configuration, computed=()) if configuration.computed else configuration


def configuration_text(configuration: Configuration) -> str:
    """Return the canonical text of a configuration; see the module."""
    content = {
        "op": configuration.op,
        "attrs": {name: encode_attr(value) for name, value in configuration.attrs},
        "inputs": [_type_json(kind) for kind in configuration.inputs],
        "layout": LAYOUT,
        **({_COMPUTED: list(configuration.computed)} if configuration.computed else {}),
    }
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False)


def parse_configuration(text: str, where: str = "configuration") -> Configuration:
    """Return the configuration of a text; its result's type is inferred.

    Args:
        where: file and row, for messages.

    Raises:
        InputError: it is no such text, or no operator takes these operands and attributes.
    """
    content = _fields(text, where)
    if content["layout"] != LAYOUT:
        raise InputError(f"{where}: layout {content['layout']!r}, expected {LAYOUT!r}")
    try:
        operator = get_operator(str(content["op"]))
        place = JsonPlace(content["inputs"], where, "inputs")
        inputs = tuple(_parse_type(item) for item in place.items())
        attrs = _parse_attrs(content["attrs"], operator.name, where)
        operator.check_arity(len(inputs))
        complete = operator.canonical(inputs, attrs)
        output = operator.infer(inputs, complete)
        computed = _parse_computed(content.get(_COMPUTED, []), where)
        return configuration_of(operator.name, inputs, output, complete, computed)
    except RelationalTensatError as error:
        message = str(error)
        raise InputError(message if where in message else f"{where}: {message}") from error


def libraries_text(libraries: Mapping[str, str]) -> str:
    """Return the versions of a device's libraries as one canonical text: JSON, sorted by name."""
    return json.dumps(dict(sorted(libraries.items())), separators=(",", ":"), ensure_ascii=False)


def parse_libraries(text: str, where: str) -> dict[str, str]:
    """Return the versions by name that ``libraries_text`` wrote.

    Raises:
        InputError: it is no such text.
    """
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    if not isinstance(content, dict) or not all(isinstance(v, str) for v in content.values()):
        raise InputError(f"{where}: libraries {text!r}, expected a JSON object of versions by name")
    return content


def _one_form(value: AttrValue, kind: str) -> AttrValue:
    """Return the one spelling of equal numbers: 1 and 1.0, 0.0 and -0.0."""
    if kind == "float" and isinstance(value, int | float):
        return float(value) + 0.0
    if kind == "floats" and isinstance(value, tuple):
        return tuple(_one_form(item, "float") for item in value)
    return value


def _type_json(kind: ValueType) -> Any:
    return str(kind) if isinstance(kind, TensorType) else [str(part) for part in kind]


def _fields(text: str, where: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise InputError(f"{where}: not a configuration: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{where}: not a configuration: expected a JSON object")
    for name in content:
        if name not in (*_FIELDS, _COMPUTED):
            raise InputError(f"{where}: unknown key {name!r}{nearest(name, _FIELDS)}")
    for name in _FIELDS:
        if name not in content:
            raise InputError(f"{where}: the key {name!r} is missing")
    return content


def _parse_attrs(content: object, op: str, where: str) -> dict[str, AttrValue]:
    if not isinstance(content, dict):
        raise InputError(f"{where}: attrs {content!r}, expected an object")
    kinds = {attr.name: attr.kind for attr in get_operator(op).attrs}
    return {
        name: decode_attr(JsonPlace(value, where, f"attrs.{name}"), kinds.get(name, "any"))
        for name, value in content.items()
    }


def _parse_computed(content: object, where: str) -> list[int]:
    if not isinstance(content, list) or not all(type(number) is int for number in content):
        raise InputError(f"{where}: computed {content!r}, expected an array of operands' numbers")
    return content


def _parse_type(place: JsonPlace) -> ValueType:
    if isinstance(place.value, list):
        return tuple(_parse_tensor(item) for item in place.items())
    return _parse_tensor(place)


def _parse_tensor(place: JsonPlace) -> TensorType:
    """Read what ``str(TensorType)`` wrote; an element type may have brackets of its own."""
    text = place.text()
    dtype, bracket, sizes = text.removesuffix("]").rpartition("[")
    parts = sizes.split(",") if sizes else []
    if not text.endswith("]") or not bracket or not dtype or not all(map(_is_size, parts)):
        place.expected("a type like float32[2,3]")
    return TensorType(dtype, tuple(map(int, parts)))


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdecimal() and int(text) > 0


#: The columns of a sample.
TIME_COLUMNS = ("median_us", "p10_us", "p90_us")


@dataclass(frozen=True, slots=True)
class Record:
    """One row.

    Attributes:
        configuration: its text, see cost/key.py.
        date: when it was measured: UTC, ISO 8601, to the second.
    """

    configuration: str
    key: DeviceKey
    result: TimingSample | Unmeasurable
    date: str


def device_columns(key: DeviceKey) -> dict[str, str | int]:
    """Return the columns that distinguish devices: a configuration has one row for each."""
    return {
        "kind": key.kind,
        "device": key.name,
        "driver": key.driver,
        "libraries": libraries_text(key.libraries),
        "protocol": key.protocol,
    }


def device_id(key: DeviceKey) -> str:
    """Return eight hexadecimal digits that stand for a device and all versions in its key."""
    text = "\n".join(map(str, device_columns(key).values()))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def describe_device(key: DeviceKey) -> str:
    """Return a device's name and all versions, for people."""
    libraries = ", ".join(f"{name} {version}" for name, version in sorted(key.libraries.items()))
    parts = (key.name, key.driver, libraries, f"protocol {key.protocol}")
    return "; ".join(part for part in parts if part)


def check_is_same(device: Device, key: DeviceKey) -> None:
    """Check that times of a machine are those that are asked for.

    Raises:
        OtherMachineError: it is another one.
    """
    if device.key != key:
        raise OtherMachineError(
            f"{platform.node()}: measures on {describe_device(device.key)}, expected "
            f"{describe_device(key)} as where the models are searched"
        )


def differences(old: DeviceKey, new: DeviceKey) -> tuple[str, ...]:
    """Return what differs between two keys of one device, each as ``what: old → new``."""
    changes = [
        f"{field}: {before} → {after}"
        for field, before, after in (
            ("driver", old.driver, new.driver),
            ("protocol", old.protocol, new.protocol),
        )
        if before != after
    ]
    for name in sorted({*old.libraries, *new.libraries}):
        before, after = _version(old.libraries, name), _version(new.libraries, name)
        if before != after:
            changes.append(f"{name}: {before} → {after}")
    return tuple(changes)


def sample_fault(sample: TimingSample) -> str:
    """Return what is wrong with a sample, in a few words; "" where nothing is."""
    for name in TIME_COLUMNS:
        time_us = getattr(sample, name)
        if not math.isfinite(time_us) or time_us < 0:
            return f"{name} = {time_us}, expected a finite number, not negative"
    if not sample.p10_us <= sample.median_us <= sample.p90_us:
        return (
            f"p10_us, median_us, p90_us = {sample.p10_us}, {sample.median_us}, {sample.p90_us}, "
            "expected none above the next"
        )
    return "" if sample.samples > 0 else f"samples = {sample.samples}, expected 1 or more"


def now() -> str:
    """Return the time as rows have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _version(libraries: Mapping[str, str], name: str) -> str:
    return libraries.get(name, "none")


class Contents:
    """Hashes of graphs; each is made once, and what several have in common, as weights, is read once."""

    def __init__(self) -> None:
        self._graphs: dict[Graph, str] = {}
        self._arrays: dict[int, tuple[Array, str]] = {}

    def of(self, graph: Graph) -> str:
        """Return the hash of a graph: of its operators, types, weights, outputs and operator sets.

        A value's hash is made of its operator's and its operands' (Merkle 1987). The graph's is made of
        those of all nodes, so that a value that is computed twice counts twice.
        """
        if graph not in self._graphs:
            self._graphs[graph] = self._of_new(graph)
        return self._graphs[graph]

    def _of_new(self, graph: Graph) -> str:
        values = {name: _digest("input", name, kind) for name, kind in graph.inputs.items()}
        for name, weight in graph.weights.items():
            data = "" if weight.data is None else self._of_array(weight.data)
            values[name] = _digest("weight", weight.type, data)
        nodes = []
        for node in graph.nodes:
            operands = [values[name] for name in node.inputs]
            kinds = [graph.types[name] for name in node.outputs]
            nodes.append(_digest(node.op, sorted(node.attrs.items()), kinds, operands))
            for place, name in enumerate(node.outputs):
                values[name] = _digest(nodes[-1], place)
        outputs = [values[name] for name in graph.outputs]
        return _digest(sorted(nodes), outputs, sorted(graph.metadata.items()))

    def of_arrays(self, arrays: Mapping[str, Array]) -> str:
        """Return the hash of values by name."""
        return _digest(*((name, self._of_array(array)) for name, array in sorted(arrays.items())))

    def _of_array(self, array: Array) -> str:
        key = id(array)
        if key not in self._arrays:  # kept, so that no other array gets its number
            self._arrays[key] = array, array_digest(array).hex()
        return self._arrays[key][1]


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def graph_configurations(graph: Graph) -> Iterator[Configuration]:
    """Yield the configuration of each node that runs at inference, in order."""
    constant = weight_only_values(graph)
    for node, inputs, output in inference_nodes(graph):
        computed = [n for n, name in enumerate(node.inputs) if name not in constant]
        yield configuration_of(node.op, inputs, output, node.attrs, computed)


def nodes_of(configuration: Configuration) -> list[Configuration]:
    """Return the configurations of the ONNX nodes that one is written as; itself where it is one node.

    A convolution with an activation is written as Conv and Relu, and as such both run: its time is the sum
    of theirs. To measure it by itself would add a second opinion, with its own error, on the same kernels.
    """
    attrs = dict(configuration.attrs)
    inputs, output, computed = configuration.inputs, configuration.output, configuration.computed
    after: list[Configuration] = []
    activation = str(attrs.get("act", NO_ACTIVATION))
    if activation != NO_ACTIVATION:
        after.append(configuration_of(activation, (output,), output, {}))
        attrs["act"] = NO_ACTIVATION
    if get_operator(configuration.op).adds_bias_apart(inputs):
        after.insert(0, configuration_of("add", (output, inputs[2]), output, {}))
        inputs = inputs[:2]
    return [configuration_of(configuration.op, inputs, output, attrs, computed), *after]
