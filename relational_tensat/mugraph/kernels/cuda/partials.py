"""Room in shared memory for what each warp contributes to a reduction, where several work on one result."""

from __future__ import annotations

from dataclasses import replace

from relational_tensat.mugraph.graph.dims import Dim, count
from relational_tensat.mugraph.kernels.lowering.statements import (
    Program,
    Reduce,
    Stored,
    partials_of,
)

#: Warps of a block.
WARPS = 8


def with_partials(program: Program) -> Program:
    """Return a program with room for what each warp contributes to a reduction, where several do."""
    stored = dict(program.stored)
    for statements in program.statements.values():
        for statement in statements:
            if isinstance(statement, Reduce):
                results = _shared_results(program, statement)
                if results:
                    dims = (Dim("@result", results), Dim("@warp", WARPS))
                    stored[partials_of(statement.output)] = Stored(dims, is_wide=True)
    return replace(program, stored=stored)


def _shared_results(program: Program, reduce: Reduce) -> int:
    """Return how many results of a reduction several warps work on together; as in ``fused.cuh``."""
    frame = program.frame(reduce.operand)
    if frame is not None:
        batch, rows, _ = frame.sizes
        return batch * rows if -(-rows // 16) * 2 <= WARPS else 0
    dims = program.dims[reduce.operand]
    results = count(tuple(dim for dim in dims if dim.variable not in reduce.over))
    threads = 32 * WARPS
    while threads > 1 and (threads > count(dims) // results or threads * results > 32 * WARPS):
        threads //= 2
    return results if threads > 32 else 0
