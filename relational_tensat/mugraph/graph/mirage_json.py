"""Mirage's saved μGraphs: lists of operators whose dims have positions; accumulators in both spellings.

A position becomes an index variable: each dim of an input one of its own, and what an operator aligns is
renamed. Dims of size 1 that no grid splits carry none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from relational_tensat.base.errors import InputError, RelationalTensatError
from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mirage_level import Level, Tensor, check_sizes
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    BlockStep,
    Iterator,
    Kernel,
    KernelStep,
    MuGraph,
    Saver,
)
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.tensor.types import Attrs

_AXES = ("x", "y", "z")
#: Sums in strides, with the position that they are over.
_TO_DIMX = re.compile(r"reduction_([0-2])_to_dimx")


def from_mirage(document: Any, name: str) -> MuGraph:
    """Return one μGraph of Mirage's JSON, checked.

    Args:
        document: a list of kernel operators.
        name: of the program.

    Raises:
        InputError: it is malformed, or has an operator that is not known.
    """
    try:
        graph = _Reader(name).read(document)
        kernel_tensors(graph)
    except RelationalTensatError as error:
        raise InputError(f"{name}: {error}") from error
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise InputError(f"{name}: no μGraph of Mirage: {error!r}") from error
    return graph


class _Reader:
    def __init__(self, name: str) -> None:
        self._name = name
        self._made = 0
        self._kernel = Level(self._fresh, has_order=True)
        self._inputs: dict[str, Dims] = {}
        self._outputs: list[str] = []

    def read(self, document: Sequence[Mapping[str, Any]]) -> MuGraph:
        for operator in document:
            self._read_operator(operator)
        steps: list[KernelStep] = self._kernel.steps
        return MuGraph(self._name, self._inputs, tuple(steps), tuple(self._outputs))

    def _fresh(self, prefix: str) -> str:
        self._made += 1
        return f"{prefix}{self._made}"

    def _read_operator(self, operator: Mapping[str, Any]) -> None:
        op = _plain(operator["op_type"], "kn_")
        tensors = self._kernel.tensors
        if op == "input":
            (given,) = operator["output_tensors"]
            sizes = given["dim"][: given["num_dims"]]
            labels = [None if size == 1 else self._fresh("i") for size in sizes]
            tensor = Tensor(f"input{len(self._inputs)}", labels, sizes)
            self._inputs[tensor.name] = tensor.dims
            tensors[given["guid"]] = tensor
        elif op == "output":
            self._outputs += [tensors[given["guid"]].name for given in operator["input_tensors"]]
        elif op == "customized":
            self._read_kernel(operator["bgraph"])
        else:
            operands = [tensors[given["guid"]] for given in operator["input_tensors"]]
            made = operator["output_tensors"]
            results = self._kernel.results(op, operands, made)
            for given, result in zip(made, results, strict=True):
                tensors[given["guid"]] = result

    def _read_kernel(self, graph: Mapping[str, Any]) -> None:
        grid = [graph["grid_dim"][axis] for axis in _AXES]
        while grid and grid[-1] == 1:
            grid.pop()
        loop = graph["forloop_range"]
        block, iterators, savers = Level(self._fresh, has_order=False), [], []
        for operator in graph["operators"]:
            op = _plain(operator["op_type"], "tb_")
            if op == "input":
                iterators.append(self._iterator(operator, block, grid, loop))
            elif op == "output":
                savers.append(self._saver(operator, block, grid))
            else:
                made = operator["output_tensors"]
                operands = [block.tensors[given["guid"]] for given in operator["input_tensors"]]
                results = _block_step(block, op, operands, made, graph)
                for given, result in zip(made, results, strict=True):
                    check_sizes(op, result, given)
                    block.tensors[given["guid"]] = result
        steps: list[BlockStep] = block.steps
        body = BlockGraph(tuple(grid), loop, tuple(iterators), tuple(steps), tuple(savers))
        self._kernel.steps.append(Kernel(self._fresh("k"), body))

    def _iterator(
        self, operator: Mapping[str, Any], block: Level, grid: Sequence[int], loop: int
    ) -> Iterator:
        tensor = self._kernel.tensors[operator["dtensor"]["guid"]]
        (made,) = operator["output_tensors"]
        imap = tuple(_label_at(tensor, operator["input_map"][a]) for a in _AXES[: len(grid)])
        fmap = _label_at(tensor, operator["forloop_dim"]) if loop > 1 else ""
        tile = Tensor(self._fresh("t"), tensor.labels, made["dim"][: made["num_dims"]])
        block.tensors[made["guid"]] = tile
        return Iterator(tensor.name, tile.name, imap, fmap)

    def _saver(self, operator: Mapping[str, Any], block: Level, grid: Sequence[int]) -> Saver:
        (given,) = operator["input_tensors"]
        tile, device = block.tensors[given["guid"]], operator["dtensor"]
        places = [operator["output_map"][axis] for axis in _AXES[: len(grid)]]
        labels = list(tile.labels)
        for place in places:
            if place >= 0 and labels[place] is None:
                labels[place] = self._fresh("i")
        result = Tensor(self._fresh("o"), labels, device["dim"][: device["num_dims"]])
        self._kernel.tensors[device["guid"]] = result
        omap = tuple(str(labels[place]) if place >= 0 else "" for place in places)
        return Saver(tile.name, result.name, result.dims, omap)


def _block_step(
    block: Level,
    op: str,
    operands: list[Tensor],
    made: Sequence[Mapping[str, Any]],
    graph: Mapping[str, Any],
) -> list[Tensor]:
    """Return what an operator of a block graph gives."""
    accumulation = op.removeprefix("forloop_").removeprefix("accum_")
    to_dimx = _TO_DIMX.fullmatch(op)
    if to_dimx is not None:
        return [block.summed_to(operands[0], int(to_dimx[1]), graph["reduction_dimx"])]
    if accumulation == op:
        return block.results(op, operands, made)
    (x,) = operands
    last = len(x.sizes) - 1
    match accumulation:
        case "nored" | "no_red":
            return [_accumulated(block, x)]
        case "red_ld_sum":
            return [_accumulated(block, block.summed(x, last))]
        case "red_ld_mean":
            total = _accumulated(block, block.summed(x, last))
            mean: Attrs = {"value": 1.0 / (x.sizes[-1] * graph["forloop_range"])}
            return [block.emit("scale", [total], total.labels, total.sizes, mean)]
        case "redtox_ld_sum":
            return [_accumulated(block, block.summed_to(x, last, graph["reduction_dimx"]))]
        case "red_ld_rms":
            result = Tensor(block.fresh("t"), [*x.labels[:-1], None], [*x.sizes[:-1], 1])
            along = () if x.labels[-1] is None else (x.labels[-1],)
            block.steps.append(Accumulate(x.name, result.name, "rms", along))
            return [result]
    raise InputError(f"Mirage's accumulator {op!r} is not known here")


def _accumulated(block: Level, x: Tensor) -> Tensor:
    result = Tensor(block.fresh("t"), x.labels, x.sizes)
    block.steps.append(Accumulate(x.name, result.name))
    return result


def _label_at(tensor: Tensor, place: int) -> str:
    label = tensor.labels[place] if place >= 0 else None
    return label or ""


def _plain(op_type: str, prefix: str) -> str:
    if not op_type.startswith(prefix):
        raise InputError(f"operator {op_type!r} at the wrong level, expected {prefix}…")
    return op_type.removeprefix(prefix).removesuffix("_op")
