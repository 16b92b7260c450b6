"""Random tests of a μGraph against its program: over two finite fields, and in floating point.

The fields are those of section 5 of Mirage's paper, with inputs that are random indeed. Floats are float64,
and the element type that the kernels will have. Fields show, too, whether the rows of an exponential may be
scaled without a change of the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from relational_tensat.base.errors import VerificationError
from relational_tensat.mugraph.graph.arithmetic import Elements, Numbers
from relational_tensat.mugraph.graph.dims import Dims, text_of, variables
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mu_operator import names
from relational_tensat.mugraph.graph.mugraph import (
    BlockStep,
    InputIterator,
    Kernel,
    KernelStep,
    MuGraph,
    Operation,
)
from relational_tensat.mugraph.graph.residues import FAST, Primes, Residues
from relational_tensat.mugraph.graph.rewrites import flat_steps
from relational_tensat.mugraph.graph.validity import block_tensors, kernel_tensors
from relational_tensat.mugraph.verify.small_sizes import shrunk
from relational_tensat.tensor.field import Undefined

#: Draws of inputs until no denominator is 0.
_DRAWS = 20


@dataclass(frozen=True, slots=True)
class OutputDifference:
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
) -> OutputDifference | None:
    """Return where a μGraph differs from its program in random tests; None where it does not.

    Args:
        program: the program that it shall compute.
        graph: the μGraph; inputs and outputs correspond by their order.
        seed: of the first test; each draws inputs, ω and opaque functions again.
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
                return OutputDifference(name[0], place, float(one[place]), float(other[place]))
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


#: By how much normal inputs are multiplied: all, or each by its name.
Scale: TypeAlias = float | Mapping[str, float] | None
#: Of such inputs sums of 64 are beyond float16, whose largest is 65,504.
_LARGE, _MOST = 1e4, 6e4


def relative_error(
    program: MuGraph, graph: MuGraph, seed: int, dtype: str = "float64", scale: Scale = None
) -> float:
    """Return how far a μGraph computed in an element type is from its program in float64.

    Args:
        program: the program that it shall compute.
        seed: of the inputs, which are normal; without their signs where the program has no result of them,
            as the root of what is negative.
        dtype: the type that the μGraph is computed in, sums in float32 at least.
        scale: of all inputs, or of each by name; by default, so that a product of two over the longest dim
            is about 1.

    Returns:
        The norm of the difference by that of the program's result, the largest of all outputs; infinite
        where a result is not finite, unless conditions leave nothing and the program has the same there.

    Raises:
        VerificationError: the two have other inputs or outputs.
    """
    check_signature(program, graph)
    values = drawn(program, seed, scale, dtype)
    expected = _exact(program, values)
    if not all(np.isfinite(value).all() for value in expected.values()):
        values = {name: np.abs(value) for name, value in values.items()}
        expected = _exact(program, values)
    computed = evaluate(graph, renamed_inputs(program, graph, values, 0), Numbers(dtype))
    errors = []
    for _, one, other in paired(program, graph, expected, computed):
        errors.append(_error(one, other.astype(np.float64), has_choices(program)))
    return max(error if math.isfinite(error) else math.inf for error in errors)


def has_choices(program: MuGraph) -> bool:
    """Whether a program chooses by conditions, which may leave nothing: it has NaN there then."""
    return any(step.op == "keep" for step in program.operators)


def _error(expected: Elements, computed: Elements, has_nan: bool) -> float:
    """Return the norm of the difference by that of the expected; NaN may have to be where that has it."""
    if has_nan and not np.isfinite(expected).all():
        is_finite = np.isfinite(expected)
        if not is_finite.any() or not np.array_equal(
            expected[~is_finite], computed[~is_finite], equal_nan=True
        ):
            return math.inf
        expected, computed = expected[is_finite], computed[is_finite]
    difference = float(np.linalg.norm((computed - expected).ravel()))
    return difference / float(np.linalg.norm(expected.ravel())) if difference else 0.0


def _exact(program: MuGraph, values: Mapping[str, Elements]) -> dict[str, Elements]:
    exact = {name: value.astype(np.float64) for name, value in values.items()}
    return evaluate(program, exact, Numbers())


def level_error(program: MuGraph, graph: MuGraph, seed: int, free: Sequence[str]) -> float | None:
    """Return the error in float16 where all exponentials are equal and what they weigh is large.

    Sums of what they weigh are then beyond float16, unless they are divided before they are stored.

    Args:
        program, graph, seed: as for ``relative_error``.
        free: the inputs that no exponential depends on.

    Returns:
        The error; None if the program's own result is beyond float16, or it has no such inputs.
    """
    scale = {name: _LARGE if name in free else 0.0 for name in program.inputs}
    expected = _exact(program, drawn(program, seed, scale, "float16")).values()
    largest = max(float(np.nanmax(np.abs(value), initial=0.0)) for value in expected)
    if not 0 < largest < _MOST:
        return None
    return relative_error(program, graph, seed, "float16", scale)


def drawn(program: MuGraph, seed: int, scale: Scale, dtype: str) -> dict[str, Elements]:
    """Return normal inputs; of bools each element is 1 or 0."""
    generator = np.random.default_rng([seed, 64])
    longest = max((dim.size for dims in program.inputs.values() for dim in dims), default=1)
    factors = scale if isinstance(scale, Mapping) else {}
    factor = longest**-0.25 if scale is None or isinstance(scale, Mapping) else scale
    values = {
        name: factors.get(name, factor) * generator.standard_normal([dim.size for dim in dims])
        for name, dims in program.inputs.items()
    }
    values |= {name: values[name] > 0 for name in program.conditions}
    return {name: value.astype(dtype) for name, value in values.items()}


_SCALE_INPUT = "@scale"


def has_exponentials(graph: MuGraph) -> bool:
    """Whether a graph computes an exponential anywhere."""
    return any(step.op == "exp" for step in _operations(graph))


def free_of_exponentials(program: MuGraph) -> tuple[str, ...]:
    """Return the inputs of a program that no exponential depends on."""
    sources = {name: {name} for name in program.inputs}
    used: set[str] = set()
    for step in _operations(program):
        sources[step.output] = set().union(*(sources[name] for name in step.operands))
        if step.op == "exp":
            used |= sources[step.output]
    return tuple(name for name in program.inputs if name not in used)


def scaling_difference(graph: MuGraph, seed: int = 0) -> OutputDifference | None:
    """Return where a result changes when the rows of exponentials are scaled at random; None if nowhere.

    A row has the index variables of the results, but for those that something is summed over.
    """
    rows, small = rows_of(graph), shrunk(graph, graph)
    graph = graph if small is None else small[1]
    scale = tuple(dim for dim in _dims_of_rows(graph, rows))
    inputs = {**graph.inputs, _SCALE_INPUT: scale}
    same = replace(graph, inputs=inputs)
    return first_difference(same, _scaled(same, rows), seed)


def rows_of(graph: MuGraph) -> frozenset[str]:
    """Return the index variables of the results that nothing is summed over."""
    dims = kernel_tensors(graph)
    found = {name for output in graph.outputs for name in variables(dims[output])}
    for operation in _operations(graph):
        if operation.op in ("sum", "matmul", "max", "reduce_max"):
            found.difference_update(names(operation.attrs, "over"))
    return frozenset(found)


def _dims_of_rows(graph: MuGraph, rows: frozenset[str]) -> Dims:
    """Return the dims that all exponentials' rows have, at their sizes in device memory."""
    sizes = {d.variable: d for dims in kernel_tensors(graph).values() for d in dims}
    common: set[str] = set(rows)
    for kernel_dims in _exponential_dims(graph):
        common &= set(variables(kernel_dims))
    return tuple(sizes[name] for name in sizes if name in common)


def _exponential_dims(graph: MuGraph) -> Iterator[Dims]:
    device = kernel_tensors(graph)
    for step in graph.steps:
        if isinstance(step, Operation):
            if step.op == "exp":
                yield device[step.output]
            continue
        flat = replace(step, block=replace(step.block, steps=flat_steps(step.block.steps)))
        tensors = block_tensors(flat, device)
        for inner in flat.block.steps:
            if isinstance(inner, Operation) and inner.op == "exp":
                yield tensors.dims[inner.output]


def _scaled(graph: MuGraph, rows: frozenset[str]) -> MuGraph:
    """Return a graph whose exponentials are multiplied by a further input."""
    steps: list[KernelStep] = []
    for step in graph.steps:
        if isinstance(step, Kernel):
            steps.append(_scaled_kernel(step, graph.inputs[_SCALE_INPUT]))
        elif step.op == "exp":
            raw = f"{step.output}_raw"
            steps += [
                replace(step, output=raw),
                Operation("mul", (raw, _SCALE_INPUT), step.output),
            ]
        else:
            steps.append(step)
    return replace(graph, steps=tuple(steps))


def _scaled_kernel(kernel: Kernel, scale: Dims) -> Kernel:
    block = kernel.block
    steps: list[BlockStep] = []
    for step in flat_steps(block.steps):
        if isinstance(step, Operation) and step.op == "exp":
            raw = f"{step.output}_raw"
            steps += [replace(step, output=raw), Operation("mul", (raw, "@factor"), step.output)]
        else:
            steps.append(step)
    if len(steps) == len(flat_steps(block.steps)):
        return kernel
    splits = [
        next((m[axis] for it in block.iterators if (m := it.imap)[axis]), "")
        for axis in range(len(block.grid))
    ]
    mine = variables(scale)
    imap = tuple(name if name in mine else "" for name in splits)
    loops = {it.fmap for it in block.iterators} & set(mine)
    iterator = InputIterator(_SCALE_INPUT, "@factor", imap, min(loops, default=""))
    return replace(
        kernel, block=replace(block, iterators=(*block.iterators, iterator), steps=tuple(steps))
    )


def _operations(graph: MuGraph) -> Iterator[Operation]:
    for step in graph.steps:
        inner = flat_steps(step.block.steps) if isinstance(step, Kernel) else [step]
        yield from (operation for operation in inner if isinstance(operation, Operation))
