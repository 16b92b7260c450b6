"""Whether a program computes what the model's nodes compute that it was read from."""

from __future__ import annotations

import numpy as np

from relational_tensat.mugraph.fusion.candidates import Candidate
from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.dims import variables
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.tensor import Array, Graph, TensorType
from relational_tensat.tensor.operators import get_operator

_TOLERANCE = 1e-9


def computes_nodes(candidate: Candidate, seed: int) -> bool:
    """Compare a candidate's program with its nodes in float64, on random inputs of any sign.

    Where results are not finite (a root of what is negative), they are compared on positive inputs instead.
    """
    random = np.random.default_rng(seed)
    shapes = {name: _shape(candidate.graph, name) for name in candidate.inputs}
    for draw in (random.standard_normal, lambda shape: random.uniform(0.5, 1.5, shape)):
        inputs = {name: np.asarray(draw(shape)) for name, shape in shapes.items()}
        expected = _by_nodes(candidate, inputs)
        if np.isfinite(expected).all():
            difference = np.subtract(_by_program(candidate, inputs), expected.ravel())
            return bool(np.linalg.norm(difference) <= _TOLERANCE * np.linalg.norm(expected.ravel()))
    return False


def _by_nodes(candidate: Candidate, inputs: dict[str, Array]) -> Array:
    graph, values = candidate.graph, dict(inputs)
    with np.errstate(all="ignore"):
        for node in candidate.nodes:
            for name in node.inputs:
                if name not in values:  # a number
                    values[name] = np.asarray(graph.weights[name].data, np.float64)
            kinds = tuple(graph.types[name] for name in node.inputs)
            operands = tuple(values[name] for name in node.inputs)
            operator = get_operator(node.op)
            values[node.outputs[0]] = operator.evaluate_typed(operands, kinds, node.attrs)
    return np.asarray(values[candidate.output])


def _by_program(candidate: Candidate, inputs: dict[str, Array]) -> Array:
    program = candidate.program
    given = {
        name: inputs[read].reshape([dim.size for dim in dims])
        for (name, dims), read in zip(program.inputs.items(), candidate.inputs, strict=True)
    }
    (output,) = program.outputs
    result = evaluate(program, given, Numbers())[output]
    mine = variables(kernel_tensors(program)[output])
    return result.transpose([mine.index(name) for name in candidate.order]).ravel()


def _shape(graph: Graph, name: str) -> tuple[int, ...]:
    kind = graph.types[name]
    assert isinstance(kind, TensorType)
    return kind.shape
