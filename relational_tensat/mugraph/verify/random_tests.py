"""Random tests over two finite fields: section 5 of Mirage's paper, with inputs that are random indeed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from relational_tensat.base.errors import VerificationError
from relational_tensat.mugraph.field.residues import FAST, Primes, Residues
from relational_tensat.mugraph.graph.arithmetic import Elements
from relational_tensat.mugraph.graph.dims import Dims, text_of, variables
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.tensor.field import Undefined

#: Draws of inputs until no denominator is 0.
_DRAWS = 20


@dataclass(frozen=True, slots=True)
class Difference:
    """The first entry in which two results differ.

    Attributes:
        output: the program's name of the result.
        place: the entry, by the program's dims.
        expected, computed: residues modulo p, or numbers.
    """

    output: str
    place: tuple[int, ...]
    expected: float
    computed: float

    def __str__(self) -> str:
        place = ", ".join(map(str, self.place))
        return f"{self.output}[{place}] is {self.computed:.10g}, expected {self.expected:.10g}"


def first_difference(
    program: MuGraph, graph: MuGraph, seed: int, tests: int = 1, primes: Primes = FAST
) -> Difference | None:
    """Return where a μGraph differs from its program in random tests; None where it does not.

    Args:
        program: what it shall compute.
        graph: the μGraph; inputs and outputs correspond by their order.
        seed: of the first test; each draws inputs, ω and opaque functions anew.
        tests: how many.
        primes: of the fields.

    Raises:
        VerificationError: the two have other inputs or outputs, or a denominator is 0 whatever is drawn.
    """
    check_signature(program, graph)
    dims = kernel_tensors(program), kernel_tensors(graph)
    outputs = list(_paired_outputs(program, graph))
    for test in range(tests):
        expected, computed = _both(program, graph, dims, seed + test, primes)
        for name, kind in outputs:
            one = expected[name[0]][0]
            other = in_order(computed[name[1]], *kind)[0]
            if not np.array_equal(one, other):
                place = tuple(int(i) for i in np.argwhere(one != other)[0])
                return Difference(name[0], place, float(one[place]), float(other[place]))
    return None


def check_signature(program: MuGraph, graph: MuGraph) -> None:
    """Check that two graphs have inputs and outputs of the same sizes, and the same inputs of bools.

    Inputs are what a model has in memory: where index variables are the same, so is their order.

    Raises:
        VerificationError: they do not.
    """
    for what, one, other in (
        ("inputs", list(program.inputs.values()), list(graph.inputs.values())),
        ("outputs", _outputs(program), _outputs(graph)),
    ):
        sizes = [
            [[dim.size for dim in dims if dim.size > 1] for dims in side] for side in (one, other)
        ]
        if [*map(sorted, sizes[0])] != [*map(sorted, sizes[1])]:
            raise VerificationError(
                f"{graph.name}: {what} of sizes {sizes[1]}, expected {sizes[0]}"
            )
    for (name, dims), given in zip(graph.inputs.items(), program.inputs.values(), strict=True):
        own, expected = (text_of([d for d in side if d.size > 1]) for side in (dims, given))
        if own != expected and sorted(own.split()) == sorted(expected.split()):
            raise VerificationError(
                f"{graph.name}: input {name} lies in memory as [{own}], expected [{expected}]"
            )
    bools = [[name in side.conditions for name in side.inputs] for side in (program, graph)]
    if bools[0] != bools[1]:
        raise VerificationError(f"{graph.name}: other inputs are bools than the program's")


def renamed_inputs(
    program: MuGraph, graph: MuGraph, values: Mapping[str, Elements], own_axes: int
) -> dict[str, Elements]:
    """Return the program's inputs as a graph takes them: by order, as they lie in memory."""
    result = {}
    for (name, dims), given in zip(graph.inputs.items(), program.inputs, strict=True):
        value = values[given]
        result[name] = value.reshape((*value.shape[:own_axes], *(dim.size for dim in dims)))
    return result


def in_order(value: Elements, dims: Dims, wanted: Dims, own_axes: int = 1) -> Elements:
    """Return a result with its axes as the program has them."""
    if set(variables(dims)) == set(variables(wanted)):
        order = [own_axes + variables(dims).index(v) for v in variables(wanted)]
        return value.transpose((*range(own_axes), *order))
    return value.reshape((*value.shape[:own_axes], *(dim.size for dim in wanted)))


def paired(
    program: MuGraph,
    graph: MuGraph,
    expected: Mapping[str, Elements],
    computed: Mapping[str, Elements],
) -> Iterator[tuple[str, Elements, Elements]]:
    """Yield each output's name with both values, for arithmetic without axes of its own."""
    for (name, other), kind in _paired_outputs(program, graph):
        yield name, expected[name], in_order(computed[other], *kind, own_axes=0)


def _both(
    program: MuGraph,
    graph: MuGraph,
    dims: tuple[Mapping[str, Dims], Mapping[str, Dims]],
    seed: int,
    primes: Primes,
) -> tuple[dict[str, Elements], dict[str, Elements]]:
    arithmetic = Residues(seed, primes)
    for draw in range(_DRAWS):
        values = {
            name: arithmetic.draw([dim.size for dim in dims], hash((seed, draw, place)) % 2**32)
            for place, (name, dims) in enumerate(program.inputs.items())
        }
        try:
            given = renamed_inputs(program, graph, values, own_axes=1)
            return (
                evaluate(program, values, arithmetic, dims[0]),
                evaluate(graph, given, arithmetic, dims[1]),
            )
        except Undefined:
            continue
    raise VerificationError(f"{graph.name}: a denominator is 0 in {_DRAWS} draws of inputs")


def _paired_outputs(
    program: MuGraph, graph: MuGraph
) -> Iterator[tuple[tuple[str, str], tuple[Dims, Dims]]]:
    sides = zip(program.outputs, graph.outputs, _outputs(graph), _outputs(program), strict=True)
    for name, other, dims, wanted in sides:
        yield (name, other), (dims, wanted)


def _outputs(graph: MuGraph) -> list[Dims]:
    dims = kernel_tensors(graph)
    return [dims[name] for name in graph.outputs]
