"""Which index variables tensor cores need 16 elements of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relational_tensat.mugraph.graph.described import names
from relational_tensat.mugraph.graph.dims import Dims, variables
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    Operation,
    RunningMax,
)

#: The operands of each matrix product within an operator.
PAIRS: Mapping[str, tuple[tuple[int, int], ...]] = {
    "matmul": ((0, 1),),
    "concat_matmul": ((0, 2), (1, 3)),
}
#: What gives the elements of an axis to another variable, which needs the same length then.
RENAMES = ("rename", "split", "merge")
#: What gives elements of an axis to other indices, so that a tile of it is none of the result's.
MOVES = (*RENAMES, "window")


def multiplied(
    steps: Sequence[Operation | Accumulate | RunningMax], dims: Mapping[str, Dims]
) -> frozenset[str]:
    """Return the variables of rows, columns or sums of a product; not those of its batches only.

    Args:
        steps: a block's, those within thread graphs, too.
        dims: of a block's tensors.
    """
    operations = [step for step in steps if isinstance(step, Operation)]
    products = [step for step in operations if step.op in PAIRS]
    if products and any(step.op in RENAMES for step in operations):
        return frozenset(dim.variable for tensor in dims.values() for dim in tensor)
    found: set[str] = set()
    for step in products:
        over = set(names(step.attrs, "over"))
        for left, right in PAIRS[step.op]:
            x, y = (set(variables(dims[step.operands[place]])) for place in (left, right))
            found |= (x ^ y) | ((x & y) & over)
    return frozenset(found)
