"""Metadata, names and devices of a file's nodes go to the nodes that replace them.

A value of the written graph that has a name of the file is the same value there. The file's nodes between
it and other values that are written are replaced by the new nodes between the same values. Each of these
gets all that those said, as in onnxscript's rewriter: equal entries once, different ones joined. Where
there are no new nodes, the node that computes the value gets it, or, of an input, the one that takes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import onnx

from relational_tensat.formats.onnx_opaque import input_names
from relational_tensat.formats.onnx_origin import Origin, Unit
from relational_tensat.formats.onnx_steps import ReadStep

#: Between two values of one key: onnxscript separates name scopes so.
_BETWEEN = ", "


def hand_on(
    steps: Sequence[tuple[ReadStep, Sequence[onnx.NodeProto]]],
    origin: Origin,
    outputs: Mapping[str, str],
) -> None:
    """Give what the file says of nodes that are not written to the nodes that replace them, in place.

    Args:
        steps: all that is written, each with its nodes.
        outputs: values of the graph by the names of the file's outputs.
    """
    if not any(_says_anything(unit.node) for unit in origin.units.values()):
        return
    lineage = _Lineage(steps, origin)
    replaced: defaultdict[int, dict[int, Unit]] = defaultdict(dict)
    for name, value, taker in (*lineage.names(), *((*item, None) for item in outputs.items())):
        units = {id(unit): unit for unit in lineage.replaced_units(name)}
        for index in lineage.replacing(value, taker) if units else ():
            replaced[index] |= units
    for index, units in replaced.items():
        step, nodes = steps[index]
        own = [] if step.kept is None else [step.kept.unit]
        in_order = sorted([*units.values(), *own], key=lambda unit: unit.place)
        for node in nodes:
            _merge(node, [unit.node for unit in in_order])


class _Lineage:
    def __init__(
        self, steps: Sequence[tuple[ReadStep, Sequence[onnx.NodeProto]]], origin: Origin
    ) -> None:
        self._steps = [step for step, _ in steps]
        self._units = origin.units
        self._known = origin.known
        self._giver = {value: i for i, step in enumerate(self._steps) for value in step.outputs}
        kept = [step.kept.unit for step in self._steps if step.kept is not None]
        self._kept = {id(unit) for unit in kept}
        self._kept_calls = {unit.place for unit in kept if unit in origin.calls.values()}

    def names(self) -> Iterator[tuple[str, str, int | None]]:
        """Yield names that values have in the file, each with the value and the step that takes it."""
        for index, step in enumerate(self._steps):
            if step.kept is None:
                yield from ((value, value, None) for value in step.outputs)
            else:
                yield from ((name, value, index) for name, value in step.kept.inputs.items())

    def replaced_units(self, name: str) -> Iterator[Unit]:
        """Yield the file's nodes that are not written before a value, up to written ones and constants."""
        seen = {name}
        stack = [name]
        while stack:
            unit = self._units.get(stack.pop())
            if unit is None or id(unit) in self._kept or unit.place in self._kept_calls:
                continue
            yield unit
            for operand in input_names(unit.node):
                if not (operand in seen or operand in self._giver or operand in self._known):
                    seen.add(operand)
                    stack.append(operand)

    def replacing(self, value: str, taker: int | None) -> list[int]:
        """Return what gives a value, with what is new before it up to values of the file."""
        giver = self._giver.get(value)
        if giver is None:
            return [] if taker is None else [taker]
        found = [giver]
        for index in found:
            if self._steps[index].kept is None:
                inputs = (name for name in self._steps[index].inputs if name not in self._units)
                givers = dict.fromkeys(self._giver[name] for name in inputs if name in self._giver)
                found += [i for i in givers if i not in found and self._steps[i].kept is None]
        return found


def _says_anything(node: onnx.NodeProto) -> bool:
    return bool(node.name or node.metadata_props or node.device_configurations)


def _merge(node: onnx.NodeProto, replaced: Sequence[onnx.NodeProto]) -> None:
    """Let a node say all that several say; it is named as the last of its kind, or the last."""
    entries: dict[str, dict[str, None]] = defaultdict(dict)
    devices: dict[bytes, onnx.NodeDeviceConfigurationProto] = {}
    for source in replaced:
        for entry in source.metadata_props:
            entries[entry.key][entry.value] = None
        for item in source.device_configurations:
            devices.setdefault(item.SerializeToString(), item)
    del node.metadata_props[:]
    for key, values in entries.items():
        node.metadata_props.add(key=key, value=_BETWEEN.join(values))
    del node.device_configurations[:]
    node.device_configurations.extend(devices.values())
    named = [source for source in replaced if source.name]
    alike = [source for source in named if source.op_type == node.op_type]
    if named and not node.name:
        node.name = (alike or named)[-1].name
