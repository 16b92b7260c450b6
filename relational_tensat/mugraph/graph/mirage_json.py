"""Mirage's saved μGraphs: lists of operators whose dims have positions; accumulators in both spellings.

A position becomes an index variable: each dim of an input one of its own, and what an operator aligns is
renamed. Dims of size 1 that no grid splits carry none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relational_tensat.base.errors import InputError, RelationalTensatError
from relational_tensat.mugraph.graph.dims import Dim, Dims
from relational_tensat.mugraph.graph.input_windows import Window
from relational_tensat.mugraph.graph.mirage_steps import BINARY, FUNCTIONS
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    BlockStep,
    Iterator,
    Kernel,
    KernelStep,
    MuGraph,
    Operation,
    Saver,
)
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.tensor.types import Attrs

_AXES = ("x", "y", "z")
#: Operators of a number or two, which Mirage's writer leaves out.
_WITHOUT_NUMBERS = ("clamp", "mul_scalar")
#: Operators of parts, with the position that these lie along.
_PARTS = re.compile(r"(split|chunk|concat)_([0-2])")


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


class _Tensor:
    """A tensor while it is read: its name, and per position the index variable and the size."""

    def __init__(self, name: str, labels: Sequence[str | None], sizes: Sequence[int]) -> None:
        self.name = name
        self.labels = list(labels)
        self.sizes = list(sizes)

    @property
    def dims(self) -> Dims:
        pairs = zip(self.labels, self.sizes, strict=True)
        return tuple(Dim(label, size) for label, size in pairs if label is not None)


class _Level:
    """The steps of one level, and its tensors by Mirage's numbers."""

    def __init__(self, fresh: Callable[[str], str]) -> None:
        self.steps: list[Any] = []
        self.tensors: dict[int, _Tensor] = {}
        self.fresh = fresh

    def emit(
        self, op: str, operands: Sequence[_Tensor], labels: Sequence[str | None], sizes: Sequence[int],
        attrs: Attrs | None = None,
    ) -> _Tensor:  # fmt: skip
        """Add an operation; return its result."""
        result = _Tensor(self.fresh("t"), labels, sizes)
        self.steps.append(Operation(op, tuple(t.name for t in operands), result.name, attrs or {}))
        return result

    def apply(self, op: str, operands: list[_Tensor]) -> _Tensor:
        """Apply an operator by its name without level and suffix."""
        if op in FUNCTIONS:
            (x,) = operands
            return self.emit(op, [x], x.labels, x.sizes)
        if op in BINARY:
            return self._elementwise(op, *operands)
        if op == "matmul":
            return self._matmul(*operands)
        if op.startswith("reduction_") and op[-1].isdecimal():
            return self.summed(operands[0], int(op[-1]))
        if op == "rms_norm":
            (x,) = operands
            return self._elementwise("div", x, self._root_mean_square(x))
        if op == "concat_then_matmul":
            return self._concat_matmul(*operands)
        if _PARTS.fullmatch(op):
            raise InputError(f"Mirage's operator {op!r} within a kernel is not known here")
        if op in _WITHOUT_NUMBERS:
            raise InputError(f"Mirage's JSON has {op!r} without its numbers, so it could be any")
        raise InputError(f"Mirage's operator {op!r} is not known here")

    def joined(self, operands: Sequence[_Tensor], position: int) -> _Tensor:
        """Put tensors one after the other: each with zeros beside it, added up.

        Raises:
            InputError: the first has one element there, and no variable to stand before its others.
        """
        first, *others = operands
        if first.labels[position] is None and any(first.labels[position + 1 :]):
            raise InputError(f"concat_{position} begins with one element, which is not known here")
        wanted = {p: label for p, label in enumerate(first.labels) if p != position}
        parts = [first, *(self._aligned(x, wanted, first) for x in others)]
        size = sum(part.sizes[position] for part in parts)
        sizes = [*first.sizes[:position], size, *first.sizes[position + 1 :]]
        into, start = self.fresh("i"), 0
        total: _Tensor | None = None
        for part in parts:
            end = start + part.sizes[position]
            along = tuple(label for label in part.labels[position : position + 1] if label)
            window = Window(along, (into,), (size,), -start, 1, start, end)
            labels = [*part.labels[:position], into, *part.labels[position + 1 :]]
            one = self.emit("window", [part], labels, sizes, window.attrs)
            total = one if total is None else self.emit("add", [total, one], labels, sizes)
            start = end
        assert total is not None
        return total

    def pieces(self, x: _Tensor, position: int, sizes: Sequence[int]) -> list[_Tensor]:
        """Return parts of a tensor that are all of it.

        Raises:
            InputError: they are not.
        """
        if sum(sizes) != x.sizes[position]:
            raise InputError(f"parts of {sizes}, expected {x.sizes[position]} together")
        label = x.labels[position]
        made, start = [], 0
        for size in sizes:
            into = self.fresh("i") if size > 1 else None
            along, own = (() if name is None else (name,) for name in (label, into))
            window = Window(along, own, (size,) * len(own), start, 1, 0, size)
            labels = [*x.labels[:position], into, *x.labels[position + 1 :]]
            new = [*x.sizes[:position], size, *x.sizes[position + 1 :]]
            made.append(self.emit("window", [x], labels, new, window.attrs))
            start += size
        return made

    def _concat_matmul(self, w: _Tensor, x: _Tensor, y: _Tensor, z: _Tensor) -> _Tensor:
        """Return [W ‖ X]·[Y ‖ Z]; where a factor has one column, the sum of two products."""
        last = len(w.sizes) - 1
        if None in (w.labels[-1], x.labels[-1], y.labels[-2], z.labels[-2]):
            return self._elementwise("add", self._matmul(w, y), self._matmul(x, z))
        batch = {p: label for p, label in enumerate(w.labels[: last - 1]) if label is not None}
        rows = batch if w.labels[-2] is None else {**batch, last - 1: w.labels[-2]}
        x = self._aligned(x, rows, w)
        y = self._aligned(y, {**batch, last - 1: w.labels[-1]}, w)
        columns = {} if y.labels[-1] is None else {last: y.labels[-1]}
        z = self._aligned(z, {**batch, last - 1: x.labels[-1], **columns}, x)
        labels, sizes = [*w.labels[:-1], y.labels[-1]], [*w.sizes[:-1], y.sizes[-1]]
        over: Attrs = {"over": (str(w.labels[-1]), str(x.labels[-1]))}
        return self.emit("concat_matmul", [w, x, y, z], labels, sizes, over)

    def summed(self, x: _Tensor, position: int) -> _Tensor:
        """Sum over a position, which stays with size 1."""
        label = x.labels[position]
        if label is None:
            return x
        labels, sizes = list(x.labels), list(x.sizes)
        labels[position], sizes[position] = None, 1
        return self.emit("sum", [x], labels, sizes, {"over": (label,)})

    def summed_to(self, x: _Tensor, size: int) -> _Tensor:
        """Sum over the last position in strides: so many elements are left."""
        label = x.labels[-1]
        if label is None or x.sizes[-1] == size:
            return x
        slow, fast = self.fresh("i"), self.fresh("i")
        parts = (x.sizes[-1] // size, size)
        split = self.emit("split", [x], [*x.labels[:-1], fast], [*x.sizes[:-1], size],
                          {"variable": label, "into": (slow, fast), "sizes": parts})  # fmt: skip
        return self.emit("sum", [split], split.labels, split.sizes, {"over": (slow,)})

    def _root_mean_square(self, x: _Tensor) -> _Tensor:
        attrs: Attrs = {"over": () if x.labels[-1] is None else (x.labels[-1],), "epsilon": 0.0}
        return self.emit("rms", [x], [*x.labels[:-1], None], [*x.sizes[:-1], 1], attrs)

    def _elementwise(self, op: str, a: _Tensor, b: _Tensor) -> _Tensor:
        places = list(range(len(a.sizes)))
        for place in places:
            if a.sizes[place] != b.sizes[place]:
                a, b = (self.summed(t, place) if t.sizes[place] == 1 else t for t in (a, b))
        wanted = {p: a.labels[p] for p in places if None not in (a.labels[p], b.labels[p])}
        b = self._aligned(b, wanted, a)
        labels = [
            one if one is not None else other for one, other in zip(a.labels, b.labels, strict=True)
        ]
        return self.emit(op, [a, b], labels, list(map(max, a.sizes, b.sizes)))

    def _matmul(self, a: _Tensor, b: _Tensor) -> _Tensor:
        rank = len(a.sizes)
        inner = a.labels[-1]
        if inner is None or b.labels[-2] is None:  # a product of a column and a row
            a, b, inner = self.summed(a, rank - 1), self.summed(b, rank - 2), None
        wanted = {
            place: a.labels[place] for place in range(rank - 2) if a.labels[place] is not None
        }
        if inner is not None:
            wanted[rank - 2] = inner
        b = self._aligned(b, wanted, a)
        labels, sizes = [*a.labels[:-1], b.labels[-1]], [*a.sizes[:-1], b.sizes[-1]]
        if inner is None:
            return self.emit("mul", [a, b], labels, sizes)
        return self.emit("matmul", [a, b], labels, sizes, {"over": (inner,)})

    def _aligned(self, b: _Tensor, wanted: Mapping[int, str | None], a: _Tensor) -> _Tensor:
        """Return b with the wanted variables at some positions, and none of a's at the others."""
        target = [wanted.get(place, label) for place, label in enumerate(b.labels)]
        for place, label in enumerate(b.labels):
            if place not in wanted and label is not None and label in a.labels:
                target[place] = self.fresh("i")
        for final in (False, True):  # first out of each other's way
            for place, label in enumerate(b.labels):
                goal = target[place]
                if label is None or goal is None or label == goal:
                    continue
                new = goal if final or goal not in b.labels else self.fresh("i")
                labels = [*b.labels[:place], new, *b.labels[place + 1 :]]
                b = self.emit("rename", [b], labels, b.sizes, {"variable": label, "into": new})
        return b


class _Reader:
    def __init__(self, name: str) -> None:
        self._name = name
        self._made = 0
        self._kernel = _Level(self._fresh)
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
            tensor = _Tensor(f"input{len(self._inputs)}", labels, sizes)
            self._inputs[tensor.name] = tensor.dims
            tensors[given["guid"]] = tensor
        elif op == "output":
            self._outputs += [tensors[given["guid"]].name for given in operator["input_tensors"]]
        elif op == "customized":
            self._read_kernel(operator["bgraph"])
        else:
            operands = [tensors[given["guid"]] for given in operator["input_tensors"]]
            made = operator["output_tensors"]
            results = self._applied(op, operands, made)
            for given, result in zip(made, results, strict=True):
                tensors[given["guid"]] = result

    def _applied(
        self, op: str, operands: list[_Tensor], made: Sequence[Mapping[str, Any]]
    ) -> list[_Tensor]:
        """Return what an operator of the kernel graph gives."""
        parts = _PARTS.fullmatch(op)
        if parts is None:
            return [self._kernel.apply(op, operands)]
        position = int(parts[2])
        if parts[1] == "concat":
            result = self._kernel.joined(operands, position)
            _check_sizes(op, result, made[0])
            return [result]
        (x,) = operands
        sizes = [given["dim"][position] for given in made]
        if parts[1] == "chunk" and len(set(sizes)) > 1:
            raise InputError(f"{op} has parts of {sizes}, expected equal ones")
        results = self._kernel.pieces(x, position, sizes)
        for result, given in zip(results, made, strict=True):
            _check_sizes(op, result, given)
        return results

    def _read_kernel(self, graph: Mapping[str, Any]) -> None:
        grid = [graph["grid_dim"][axis] for axis in _AXES]
        while grid and grid[-1] == 1:
            grid.pop()
        loop = graph["forloop_range"]
        block, iterators, savers = _Level(self._fresh), [], []
        for operator in graph["operators"]:
            op = _plain(operator["op_type"], "tb_")
            if op == "input":
                iterators.append(self._iterator(operator, block, grid, loop))
            elif op == "output":
                savers.append(self._saver(operator, block, grid))
            else:
                (made,) = operator["output_tensors"]
                operands = [block.tensors[given["guid"]] for given in operator["input_tensors"]]
                result = _block_step(block, op, operands, graph)
                _check_sizes(op, result, made)
                block.tensors[made["guid"]] = result
        steps: list[BlockStep] = block.steps
        body = BlockGraph(tuple(grid), loop, tuple(iterators), tuple(steps), tuple(savers))
        self._kernel.steps.append(Kernel(self._fresh("k"), body))

    def _iterator(
        self, operator: Mapping[str, Any], block: _Level, grid: Sequence[int], loop: int
    ) -> Iterator:
        tensor = self._kernel.tensors[operator["dtensor"]["guid"]]
        (made,) = operator["output_tensors"]
        imap = tuple(_label_at(tensor, operator["input_map"][a]) for a in _AXES[: len(grid)])
        fmap = _label_at(tensor, operator["forloop_dim"]) if loop > 1 else ""
        tile = _Tensor(self._fresh("t"), tensor.labels, made["dim"][: made["num_dims"]])
        block.tensors[made["guid"]] = tile
        return Iterator(tensor.name, tile.name, imap, fmap)

    def _saver(self, operator: Mapping[str, Any], block: _Level, grid: Sequence[int]) -> Saver:
        (given,) = operator["input_tensors"]
        tile, device = block.tensors[given["guid"]], operator["dtensor"]
        places = [operator["output_map"][axis] for axis in _AXES[: len(grid)]]
        labels = list(tile.labels)
        for place in places:
            if place >= 0 and labels[place] is None:
                labels[place] = self._fresh("i")
        result = _Tensor(self._fresh("o"), labels, device["dim"][: device["num_dims"]])
        self._kernel.tensors[device["guid"]] = result
        omap = tuple(str(labels[place]) if place >= 0 else "" for place in places)
        return Saver(tile.name, result.name, result.dims, omap)


def _block_step(
    block: _Level, op: str, operands: list[_Tensor], graph: Mapping[str, Any]
) -> _Tensor:
    accumulation = op.removeprefix("forloop_").removeprefix("accum_")
    if accumulation == op:
        return block.apply(op, operands)
    (x,) = operands
    match accumulation:
        case "nored" | "no_red":
            return _accumulated(block, x)
        case "red_ld_sum":
            return _accumulated(block, block.summed(x, len(x.sizes) - 1))
        case "redtox_ld_sum":
            return _accumulated(block, block.summed_to(x, graph["reduction_dimx"]))
        case "red_ld_rms":
            last = x.labels[-1]
            result = _Tensor(block.fresh("t"), [*x.labels[:-1], None], [*x.sizes[:-1], 1])
            along = () if last is None else (last,)
            block.steps.append(Accumulate(x.name, result.name, "rms", along))
            return result
    raise InputError(f"Mirage's accumulator {op!r} is not known here")


def _accumulated(block: _Level, x: _Tensor) -> _Tensor:
    result = _Tensor(block.fresh("t"), x.labels, x.sizes)
    block.steps.append(Accumulate(x.name, result.name))
    return result


def _check_sizes(op: str, result: _Tensor, made: Mapping[str, Any]) -> None:
    given = made["dim"][: made["num_dims"]]
    if list(result.sizes) != given:
        raise InputError(f"{op} has a result of {given}, expected {result.sizes}")


def _label_at(tensor: _Tensor, place: int) -> str:
    label = tensor.labels[place] if place >= 0 else None
    return label or ""


def _plain(op_type: str, prefix: str) -> str:
    if not op_type.startswith(prefix):
        raise InputError(f"operator {op_type!r} at the wrong level, expected {prefix}…")
    return op_type.removeprefix(prefix).removesuffix("_op")
