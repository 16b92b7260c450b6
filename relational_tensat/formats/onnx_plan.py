"""Which name each value of a graph has in the ONNX model, so that the model's own names survive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from relational_tensat.formats.onnx_metadata import written_outputs
from relational_tensat.formats.onnx_names import FreshNames, all_names, subgraphs
from relational_tensat.formats.onnx_opaque import decode
from relational_tensat.tensor import Graph


@dataclass(frozen=True, slots=True)
class NamePlan:
    """Names for ONNX.

    Attributes:
        parts: the tensors that each value consists of: itself, or the parts of a tuple.
        names: the ONNX name of each tensor.
        outputs: the ONNX names of the model's outputs, in order.
        copies: (new name, name) where an output needs a further name.
        used_weights: the weights that nodes or outputs use, in order.
        reserved: all names of the ONNX graph; values inside subgraphs must have others.
        fresh: gives further names.
    """

    parts: dict[str, tuple[str, ...]]
    names: dict[str, str]
    outputs: list[str]
    copies: list[tuple[str, str]]
    used_weights: list[str]
    reserved: set[str]
    fresh: FreshNames


def plan_names(graph: Graph) -> NamePlan:
    """Decide all names of a graph's ONNX form.

    Inputs keep their names; outputs have those that the model was read with, else those of the
    tensors that they are; all others keep theirs unless an output takes it.
    """
    parts = _parts(graph)
    slots = [part for value in graph.outputs for part in parts[value]]
    used_tensors = {part for node in graph.nodes for value in node.inputs for part in parts[value]}
    used_tensors.update(slots)
    weights = [value for value in graph.weights if value in used_tensors]
    output_names = written_outputs(graph.metadata)
    if len(output_names) != len(slots) or len(set(output_names)) != len(output_names):
        output_names = slots
    fresh = FreshNames({*graph.types, *output_names, *_inner_names(graph)})
    fixed = [*graph.inputs, *(value for value in weights if graph.weights[value].data is None)]
    names = {value: value for value in fixed}
    reserved = set(fixed)
    outputs, copies = _name_outputs(slots, output_names, names, reserved, fresh)
    tensors = [*weights, *(part for node in graph.nodes for part in node.outputs)]
    for value in tensors:
        if value not in names:
            names[value] = fresh.new(value) if value in reserved else value
            reserved.add(names[value])
    resolved = [(name, names[value]) for name, value in copies]
    return NamePlan(parts, names, outputs, resolved, weights, reserved, fresh)


def _name_outputs(
    slots: list[str],
    output_names: list[str],
    names: dict[str, str],
    reserved: set[str],
    fresh: FreshNames,
) -> tuple[list[str], list[tuple[str, str]]]:
    """Name the outputs; return their names, and (name, tensor) for those that must be copies."""
    outputs: list[str] = []
    copies: list[tuple[str, str]] = []
    for value, name in zip(slots, output_names, strict=True):
        if value not in names and name not in reserved:
            names[value] = name
        elif names.get(value) != name or name in outputs:
            name = fresh.new(name) if name in reserved else name
            copies.append((name, value))
        outputs.append(name)
        reserved.add(name)
    return outputs, copies


def _parts(graph: Graph) -> dict[str, tuple[str, ...]]:
    parts: dict[str, tuple[str, ...]] = {
        value: (value,) for value in (*graph.inputs, *graph.weights)
    }
    for node in graph.nodes:
        if node.op == "noop":
            own = tuple(part for value in node.inputs for part in parts[value])
            parts[node.outputs[0]] = own
        elif node.op == "part":
            parts[node.outputs[0]] = (parts[node.inputs[0]][cast(int, node.attrs["index"])],)
        else:
            parts.update({value: (value,) for value in node.outputs})
    return parts


def _inner_names(graph: Graph) -> set[str]:
    """Return the names that the subgraphs of opaque nodes define."""
    names: set[str] = set()
    for node in graph.nodes:
        if node.op == "opaque":
            for inner in subgraphs(decode(cast(str, node.attrs["payload"]))):
                names |= all_names(inner)
    return names
