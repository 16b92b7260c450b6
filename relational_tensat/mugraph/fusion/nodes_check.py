"""Whether a program computes what the model's nodes compute that it was read from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.fusion.candidates import Candidate
from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.dims import variables
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.mugraph.verify.floats import has_choices
from relational_tensat.mugraph.verify.masks import are_same, masked
from relational_tensat.mugraph.verify.stability import stable_if_possible
from relational_tensat.tensor import Array, Graph, TensorType, ValueType, tensors_of
from relational_tensat.tensor.operators import get_operator

_TOLERANCE = 1e-9
#: In float64: 1 GiB, and about a minute.
_MOST_ELEMENTS = 1 << 27
_MOST_FLOPS = 1 << 40


def computes_nodes(candidate: Candidate, seed: int) -> bool:
    """Compare a candidate's program with its nodes in float64, on random inputs of any sign.

    Where results are not finite (a root of what is negative), they are compared on positive inputs instead;
    where conditions may leave nothing, NaN has to be where the nodes have it.

    Raises:
        InputError: that would take minutes, or more memory than a few GB.
    """
    _check_size(candidate)
    if has_choices(candidate.program):  # exp of the lowest number is 0, throughout some rows
        candidate = replace(candidate, program=stable_if_possible(candidate.program))
    random = np.random.default_rng(seed)
    shapes = {name: _shape(candidate.graph, name) for name in candidate.inputs}
    for draw in (random.standard_normal, lambda shape: random.uniform(0.5, 1.5, shape)):
        inputs = {name: np.asarray(draw(shape)) for name, shape in shapes.items()}
        inputs |= {name: random.random(shapes[name]) < 0.5 for name in _conditions(candidate)}
        expected = _by_nodes(candidate, inputs)
        if has_choices(candidate.program) and all(np.isfinite(v).any() for v in expected):
            pairs = zip(expected, _by_program(candidate, inputs), strict=True)
            is_right = all(are_same(one.ravel(), other) for one, other in pairs)
            return is_right and _computes_masked(candidate, inputs, seed)
        if all(np.isfinite(value).all() for value in expected):
            computed = _by_program(candidate, inputs)
            is_right = all(map(_is_close, computed, expected))
            return is_right and _computes_masked(candidate, inputs, seed)
    return False


def _computes_masked(candidate: Candidate, inputs: dict[str, Array], seed: int) -> bool:
    """Compare a candidate's program with its nodes where masks leave little or nothing, if it has any."""
    program = candidate.program
    shapes = {name: _shape(candidate.graph, name) for name in candidate.inputs}
    for given in masked(program, _as_program_has(candidate, inputs), seed):
        values = [
            given[name].reshape(shape) for name, shape in zip(given, shapes.values(), strict=True)
        ]
        masks = dict(zip(shapes, values, strict=True))
        masks |= {name: masks[name] != 0 for name in _conditions(candidate)}
        computed = _by_program(candidate, masks)
        for one, other in zip(_by_nodes(candidate, masks), computed, strict=True):
            if not are_same(one.ravel(), other):
                return False
    return True


def _is_close(computed: Array, expected: Array) -> bool:
    distance = np.linalg.norm(np.subtract(computed, expected.ravel()))
    return bool(distance <= _TOLERANCE * np.linalg.norm(expected.ravel()))


def _check_size(candidate: Candidate) -> None:
    types, elements, flops = candidate.graph.types, 0, 0
    for node in candidate.nodes:
        kinds = [types[name] for name in node.outputs]
        kind = kinds[0] if len(kinds) == 1 else tuple(map(_tensor_type, kinds))
        elements += sum(part.size for part in tensors_of(kind))
        operands = tuple(types[name] for name in node.inputs)
        flops += get_operator(node.op).flops(operands, kind, node.attrs)
    if elements > _MOST_ELEMENTS or flops > _MOST_FLOPS:
        raise InputError("too large to be compared with its nodes here")


def _by_nodes(candidate: Candidate, inputs: dict[str, Array]) -> list[Array]:
    graph, values = candidate.graph, dict(inputs)
    with np.errstate(all="ignore"):
        for node in candidate.nodes:
            for name in node.inputs:
                if name not in values:  # a number
                    data = np.asarray(graph.weights[name].data)
                    values[name] = data if data.dtype.kind in "iu" else data.astype(np.float64)
            kinds = tuple(graph.types[name] for name in node.inputs)
            operands = tuple(values[name] for name in node.inputs)
            operator = get_operator(node.op)
            computed = operator.evaluate_typed(operands, kinds, node.attrs)
            made = computed if isinstance(computed, tuple) else (computed,)
            values.update(zip(node.outputs, made, strict=True))
    return [np.asarray(values[output]) for output in candidate.outputs]


def _by_program(candidate: Candidate, inputs: dict[str, Array]) -> list[Array]:
    program, given = candidate.program, _as_program_has(candidate, inputs)
    results, dims = evaluate(program, given, Numbers()), kernel_tensors(program)
    flat = []
    for output, order in zip(program.outputs, candidate.orders, strict=True):
        mine = variables(dims[output])
        flat.append(results[output].transpose([mine.index(name) for name in order]).ravel())
    return flat


def _as_program_has(candidate: Candidate, inputs: dict[str, Array]) -> dict[str, Array]:
    """Return inputs by the program's names, with an axis for each index variable."""
    named = zip(candidate.program.inputs.items(), candidate.inputs, strict=True)
    return {
        name: inputs[read].reshape([dim.size for dim in dims]).astype(np.float64)
        for (name, dims), read in named
    }


def _conditions(candidate: Candidate) -> list[str]:
    """Return the model's values that are read as bools."""
    conditions = candidate.program.conditions
    named = zip(candidate.program.inputs, candidate.inputs, strict=True)
    return [read for name, read in named if name in conditions]


def _shape(graph: Graph, name: str) -> tuple[int, ...]:
    return _tensor_type(graph.types[name]).shape


def _tensor_type(kind: ValueType) -> TensorType:
    assert isinstance(kind, TensorType)
    return kind
