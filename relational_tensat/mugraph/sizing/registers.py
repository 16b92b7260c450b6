"""What products take of a thread's registers, where they lie as tensor cores leave them."""

from __future__ import annotations

import numpy as np

from relational_tensat.mugraph.graph.described import names
from relational_tensat.mugraph.graph.mugraph import BlockGraph, Operation
from relational_tensat.mugraph.graph.well_formed import BlockTensors, Stage
from relational_tensat.mugraph.kernels.lowering.lowering import frame_of
from relational_tensat.mugraph.sizing.choices import Floats, Sizes, product_of, sum_of

#: What a thread may have of products. Compilers need the rest of its 255 registers for exponentials,
#: operands and addresses: of the benchmarks, kernels with 120 spilled nothing, some with 164 did.
MOST_REGISTERS = 128
#: Rows and columns of what an instruction computes, of which each thread of a warp has 4 elements.
_ROWS, _COLUMNS, _ELEMENTS = 16, 8, 4
#: Sizes are chosen as if blocks had so many warps; with more of them a thread has less of a product.
_WARPS = 4


def product_registers(block: BlockGraph, tensors: BlockTensors, sizes: Sizes) -> Floats:
    """Return how many registers a thread needs for all products of a block, as ``fused.cuh`` has them.

    Those that a loop adds up are there until its end, so all are counted as if at once.

    Args:
        block: the block graph, at any sizes.
        tensors: its tensors.
        sizes: the choices.
    """
    products = (
        step
        for step in block.steps
        if isinstance(step, Operation) and step.op in ("matmul", "concat_matmul")
    )
    return sum_of((_registers(step, tensors, sizes) for step in products), sizes)


def _registers(step: Operation, tensors: BlockTensors, sizes: Sizes) -> Floats:
    other = 1 if step.op == "matmul" else 2
    dims = [tensors.dims[step.operands[place]] for place in (0, other)]
    frame = frame_of(dims[0], dims[1], names(step.attrs, "over"))
    extents = sizes.after if tensors.stages[step.output] is Stage.AFTER else sizes.tile
    matrices, rows, columns = (
        product_of((dim.variable for dim in part), extents, sizes)
        for part in (frame.batch, frame.rows, frame.columns)
    )
    strips, pieces = np.ceil(rows / _ROWS), np.ceil(columns / _COLUMNS)
    share = np.maximum(1.0, _WARPS // strips)  # warps to a strip of rows
    own_strips: Floats = np.ceil(strips / (_WARPS // share))
    own_pieces: Floats = np.ceil(pieces / share)
    return matrices * own_strips * own_pieces * _ELEMENTS
