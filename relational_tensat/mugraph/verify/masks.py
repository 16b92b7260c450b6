"""Masks: inputs that are added to what an exponential is of, -inf where an element shall not count; bools.

A kernel that takes keys in parts meets parts of which a mask leaves nothing, and rows of which it leaves
nothing at all. Sums, maxima and quotients of these have to be what the program has, NaN where it has NaN.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from relational_tensat.mugraph.graph.arithmetic import Elements, Numbers
from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.mugraph.verify.random_tests import drawn, paired, renamed_inputs
from relational_tensat.mugraph.verify.small_sizes import summed_variables
from relational_tensat.mugraph.verify.stability import stable_if_possible

#: Relative errors by element type.
_TOLERANCES = {"float64": 1e-9, "float16": 2e-2}
#: Operators that lead from a mask to the exponential, by the operands that may be one.
_ADDING = {"add": (0, 1), "sub": (0,), "window": (0,)}
#: Rows that are masked in turn: the first half, all, any, none.
_TURNS = 4


def masks_of(program: MuGraph) -> tuple[str, ...]:
    """Return the inputs of a program that are added to what exponentials are of, and nothing else."""
    reads = Counter(name for step in program.steps for name in step.operands)
    steps = {step.output: step for step in program.steps if isinstance(step, Operation)}
    pending = [step.operands[0] for step in program.operators if step.op == "exp"]
    found = []
    while pending:
        name = pending.pop()
        if name in program.outputs or (reads[name] != 1 and name in program.inputs):
            continue
        step = steps.get(name)
        if step is None:
            found.append(name)
        elif step.op in _ADDING:
            pending += [step.operands[place] for place in _ADDING[step.op]]
    return tuple(name for name in program.inputs if name in found)


def takes_masks(program: MuGraph, graph: MuGraph, seed: int) -> bool | None:
    """Return whether a μGraph in float64 and float16 is its program where masks are -inf, or bools leave as
    little; None without masks or bools.

    Args:
        program: the program that it shall compute; its exponentials are of numbers of normal size.
        seed: of the inputs and masks.
    """
    tested, reference = None, stable_if_possible(program)
    for dtype, tolerance in _TOLERANCES.items():
        for values in masked(program, drawn(program, seed, None, dtype), seed):
            exact = {name: value.astype(np.float64) for name, value in values.items()}
            expected = evaluate(reference, exact, Numbers())
            computed = evaluate(graph, renamed_inputs(program, graph, values, 0), Numbers(dtype))
            both = paired(reference, graph, expected, computed)
            if not all(are_same(one, other, tolerance) for _, one, other in both):
                return False
            tested = True
    return tested


def masked(
    program: MuGraph, values: Mapping[str, Elements], seed: int
) -> Iterator[dict[str, Elements]]:
    """Yield a program's inputs with -inf in its masks, and 0 in its bools, in several ways.

    Nothing where it has neither.

    Args:
        values: of its inputs, by name.
        seed: of what is drawn.
    """
    masks, summed = (*masks_of(program), *program.conditions), summed_variables(program, program)
    for turn in range(_TURNS if program.conditions else _TURNS - 1 if masks else 0):
        left = {name: _is_left(program.inputs[name], summed, seed, turn) for name in masks}
        yield {
            name: _masked(value, left.get(name), is_condition=name in program.conditions)
            for name, value in values.items()
        }


def _masked(value: Elements, is_left: Elements | None, *, is_condition: bool) -> Elements:
    """Return a mask where it leaves some elements; any other value as it is."""
    if is_left is None:
        return value
    return is_left.astype(value.dtype) if is_condition else np.where(is_left, value, -np.inf)


def _is_left(dims: Dims, summed: frozenset[str], seed: int, turn: int) -> Elements:
    """Return which elements of a mask are left: of each row by its turn, counted from a first one."""
    random = np.random.default_rng([seed, turn])
    places = np.indices([dim.size for dim in dims])
    rows = np.zeros([dim.size for dim in dims], np.int64) + turn
    is_early = np.ones(rows.shape, bool)
    for dim, place in zip(dims, places, strict=True):
        if dim.variable in summed:
            is_early &= 2 * place < dim.size
        else:
            rows += place
    kinds = [~is_early, np.zeros_like(is_early), random.random(rows.shape) < 0.5]
    return np.asarray(np.select([rows % _TURNS == n for n in range(3)], kinds, True))


def are_same(
    expected: Elements, computed: Elements, tolerance: float = _TOLERANCES["float64"]
) -> bool:
    """Return whether two results are equal but for rounding, NaN and infinities included."""
    computed = computed.astype(np.float64)
    is_finite = np.isfinite(expected)
    if not np.array_equal(expected[~is_finite], computed[~is_finite], equal_nan=True):
        return False
    difference = float(np.linalg.norm(computed[is_finite] - expected[is_finite]))
    return difference <= tolerance * float(np.linalg.norm(expected[is_finite]))
