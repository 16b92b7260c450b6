"""Mirage's saved μGraphs, read: kernels, blocks, maps of positions; accumulators in both spellings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relational_tensat.base.errors import InputError, RelationalTensatError
from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mirage_levels import BlockLevel, Level, MirageTensor
from relational_tensat.mugraph.graph.mugraph import (
    AXES,
    BlockGraph,
    BlockStep,
    InputIterator,
    Kernel,
    KernelStep,
    MuGraph,
    Saver,
)
from relational_tensat.mugraph.graph.validity import kernel_tensors

#: Mirage's numbers of float16, in its saved graphs and today, and those of float32.
WIDE_TYPES = {921: 930, 941: 950}


def from_mirage(document: Any, name: str) -> MuGraph:
    """Return one μGraph of Mirage's JSON, checked.

    Args:
        document: a list of kernel operators.
        name: of the program.

    Raises:
        InputError: it is malformed, or has an operator that is not known.
    """
    reader = _MirageReader(name)
    try:
        graph = reader.read(document)
        kernel_tensors(graph)
    except RelationalTensatError as error:
        raise InputError(f"{name}: {error}") from error
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        where = reader.where or "a list of operators was expected"
        raise InputError(f"{name}: no μGraph of Mirage: {where}: {_reason(error)}") from error
    return graph


def _reason(error: Exception) -> str:
    if not isinstance(error, KeyError):
        return f"{error}"
    key = error.args[0]
    return f"the key {key!r} is missing" if isinstance(key, str) else f"there is no tensor {key}"


class _MirageReader:
    """Reads a document, operator by operator.

    Attributes:
        where: the operator that is being read, for errors.
    """

    def __init__(self, name: str) -> None:
        self.where = ""
        self._name = name
        self._made = 0
        self._kernel = Level(self._fresh, has_order=True)
        self._inputs: dict[str, Dims] = {}
        self._outputs: list[str] = []
        self._types: set[Any] = set()

    def read(self, document: Sequence[Mapping[str, Any]]) -> MuGraph:
        for place, operator in enumerate(document):
            self.where = f"operator {place}"
            self._read_operator(operator)
        steps: list[KernelStep] = self._kernel.steps
        return MuGraph(self._name, self._inputs, tuple(steps), tuple(self._outputs))

    def _is_wide(self, device: Mapping[str, Any]) -> bool:
        """Whether a tensor in device memory is float32 where inputs are float16."""
        wide = {WIDE_TYPES[given] for given in self._types if given in WIDE_TYPES}
        return device.get("data_type") in wide

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
            tensor = MirageTensor(f"input{len(self._inputs)}", labels, sizes)
            self._inputs[tensor.name] = tensor.dims
            self._types.add(given.get("data_type"))
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
        grid = [graph["grid_dim"][axis] for axis in AXES]
        while grid and grid[-1] == 1:
            grid.pop()
        loop = graph["forloop_range"]
        block, iterators, savers = BlockLevel(self._fresh, loop, graph["reduction_dimx"]), [], []
        place_of_kernel = self.where
        for place, operator in enumerate(graph["operators"]):
            self.where = f"{place_of_kernel}, operator {place} of its block"
            op = _plain(operator["op_type"], "tb_")
            if op == "input":
                iterators.append(self._iterator(operator, block, grid, loop))
            elif op == "output":
                savers.append(self._saver(operator, block, grid))
            else:
                block.step(op, operator["input_tensors"], operator["output_tensors"])
        steps: list[BlockStep] = block.steps
        body = BlockGraph(tuple(grid), loop, tuple(iterators), tuple(steps), tuple(savers))
        self._kernel.steps.append(Kernel(self._fresh("k"), body))

    def _iterator(
        self, operator: Mapping[str, Any], block: Level, grid: Sequence[int], loop: int
    ) -> InputIterator:
        tensor = self._kernel.tensors[operator["dtensor"]["guid"]]
        (made,) = operator["output_tensors"]
        imap = tuple(_label_at(tensor, operator["input_map"][a]) for a in AXES[: len(grid)])
        fmap = _label_at(tensor, operator["forloop_dim"]) if loop > 1 else ""
        tile = MirageTensor(self._fresh("t"), tensor.labels, made["dim"][: made["num_dims"]])
        block.tensors[made["guid"]] = tile
        return InputIterator(tensor.name, tile.name, imap, fmap)

    def _saver(self, operator: Mapping[str, Any], block: BlockLevel, grid: Sequence[int]) -> Saver:
        (given,) = operator["input_tensors"]
        tile, device = block.read(given), operator["dtensor"]
        places = [operator["output_map"][axis] for axis in AXES[: len(grid)]]
        labels = list(tile.labels)
        for place in places:
            if place >= 0 and labels[place] is None:
                labels[place] = self._fresh("i")
        result = MirageTensor(self._fresh("o"), labels, device["dim"][: device["num_dims"]])
        self._kernel.tensors[device["guid"]] = result
        omap = tuple(str(labels[place]) if place >= 0 else "" for place in places)
        return Saver(tile.name, result.name, result.dims, omap, self._is_wide(device))


def _label_at(tensor: MirageTensor, place: int) -> str:
    label = tensor.labels[place] if place >= 0 else None
    return label or ""


def _plain(op_type: str, prefix: str) -> str:
    if not isinstance(op_type, str) or not op_type.startswith(prefix):
        raise InputError(f"operator {op_type!r} at the wrong level, expected {prefix}…")
    return op_type.removeprefix(prefix).removesuffix("_op")
