"""What is written of a graph, and in which order: the file's own where its nodes are kept."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from relational_tensat.formats.onnx_forms import ConstantForms
from relational_tensat.formats.onnx_keep import Kept
from relational_tensat.formats.onnx_opaque import input_names
from relational_tensat.formats.onnx_origin import Origin, Unit
from relational_tensat.tensor import Graph, Node, Weight


@dataclass(frozen=True, slots=True, eq=False)
class ReadStep:
    """Something that is written.

    Attributes:
        inputs, outputs: the values that it takes and gives.
        kept: the file's own node; or else
        node: a node of the graph.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kept: Kept | None = None
    node: Node | None = None


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What is written.

    Attributes:
        steps: nodes in order.
        constants: those that are written out, by name.
    """

    steps: Sequence[ReadStep]
    constants: Mapping[str, Weight]


class CyclicError(Exception):
    """A call of a function gives what one of its own operands needs."""


def plan_steps(
    graph: Graph, kept: Mapping[str, Kept], origin: Origin | None, units: Mapping[str, Unit]
) -> ReadPlan:
    """Return what the outputs of a graph need.

    Args:
        kept: what computes values in the file the graph was read from, by these values.
        units: what computes constants in the file, by their names.

    Raises:
        CyclicError: what is kept cannot be put into an order.
    """
    steps: dict[str, ReadStep] = {}
    for node in graph.nodes:
        own = next((kept[name] for name in node.outputs if name in kept), None)
        step = _kept_step(own) if own else ReadStep(node.inputs, node.outputs, node=node)
        steps.update((name, step) for name in node.outputs)
    constants = {**(origin.known if origin else {}), **graph.weights}
    given = steps.keys() | graph.inputs.keys()
    constants = {name: weight for name, weight in constants.items() if name not in given}
    # Of a graph that is no file's, what leads to no output is written, too: it may be there to be timed.
    roots = graph.outputs if origin else (*graph.outputs, *steps)
    if origin is not None:
        needed = _needed(roots, steps)
        forms = ConstantForms(constants, origin.tensors.keys(), units)
        for name, unit in forms.computed(needed).items():
            steps.setdefault(name, _kept_step(_as_it_is(unit)))
    needed = _needed(roots, steps)
    ordered = tuple(_ordered(needed, steps))
    written = {name: constants[name] for name in constants if name in needed and name not in steps}
    return ReadPlan(ordered, written)


def _kept_step(kept: Kept) -> ReadStep:
    return ReadStep(tuple(kept.inputs.values()), tuple(kept.outputs.values()), kept)


def _as_it_is(unit: Unit) -> Kept:
    outputs = filter(None, unit.node.output)
    return Kept(
        unit, {name: name for name in input_names(unit.node)}, {name: name for name in outputs}
    )


def _needed(outputs: Sequence[str], steps: Mapping[str, ReadStep]) -> set[str]:
    """Return all values that the outputs need."""
    needed: set[str] = set()
    stack = list(outputs)
    while stack:
        value = stack.pop()
        if value not in needed:
            needed.add(value)
            if value in steps:
                stack += steps[value].inputs
    return needed


def _ordered(needed: Collection[str], steps: Mapping[str, ReadStep]) -> Iterator[ReadStep]:
    """Yield steps after what they take: the file's in its order, new ones where they are needed."""
    needed_steps = list(dict.fromkeys(step for name, step in steps.items() if name in needed))
    own = [step for step in needed_steps if step.kept is not None]
    own.sort(key=lambda step: step.kept.unit.place if step.kept is not None else 0)
    done: set[ReadStep] = set()
    for start in [*own, *needed_steps]:
        stack, begun = [start], set[ReadStep]()
        while stack:
            step = stack[-1]
            waiting = _operands(step, steps, done)
            if step in done or not waiting:
                stack.pop()
                if step not in done:
                    done.add(step)
                    yield step
                continue
            if step in begun:
                raise CyclicError
            begun.add(step)
            stack.extend(reversed(waiting))


def _operands(
    step: ReadStep, steps: Mapping[str, ReadStep], done: Collection[ReadStep]
) -> list[ReadStep]:
    operands = (steps[name] for name in step.inputs if name in steps)
    return [operand for operand in dict.fromkeys(operands) if operand not in done]
