"""Operators of Mirage's saved μGraphs as steps of ours: dims by position become dims by variable.

Each dim of an input gets an index variable of its own, and what an operator aligns is renamed. Dims of size
1 that no grid splits carry none.

A maximum of tiles (``reduction_N_max``) is that of all iterations so far, and comes with by how much the
last one moved it, before minus now. Its exponential rescales a sum over the loop: the sum so far is
multiplied by it before more is added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dim, Dims, Window
from relational_tensat.mugraph.graph.mugraph import Accumulate, Operation, RunningMax
from relational_tensat.tensor.types import Attrs

#: Operators that are called as ours.
FUNCTIONS = frozenset({"exp", "square", "sqrt", "silu", "sigmoid", "gelu", "relu", "log"})
BINARY = frozenset({"add", "sub", "mul", "div", "pow"})
#: Operators of a number or two, which Mirage's writer leaves out.
_WITHOUT_NUMBERS = ("clamp", "mul_scalar")
#: Operators of parts, with the position that these lie along.
_PARTS = re.compile(r"(split|chunk|concat)_([0-2])")


class MirageTensor:
    """A tensor while it is read: its name, and per position the index variable and the size."""

    def __init__(self, name: str, labels: Sequence[str | None], sizes: Sequence[int]) -> None:
        self.name = name
        self.labels = list(labels)
        self.sizes = list(sizes)

    @property
    def dims(self) -> Dims:
        """Those that carry an index variable, with their sizes."""
        pairs = zip(self.labels, self.sizes, strict=True)
        return tuple(Dim(label, size) for label, size in pairs if label is not None)


class Level:
    """The steps of one level, and its tensors by Mirage's numbers.

    Args:
        fresh: makes names.
        has_order: whether the order of dims is that in memory, as in device memory.
    """

    def __init__(self, fresh: Callable[[str], str], has_order: bool) -> None:
        self.steps: list[Any] = []
        self.tensors: dict[int, MirageTensor] = {}
        self.fresh = fresh
        self._has_order = has_order

    def emit(
        self, op: str, operands: Sequence[MirageTensor], labels: Sequence[str | None], sizes: Sequence[int],
        attrs: Attrs | None = None,
    ) -> MirageTensor:  # fmt: skip
        """Add an operation; return its result."""
        result = MirageTensor(self.fresh("t"), labels, sizes)
        self.steps.append(Operation(op, tuple(t.name for t in operands), result.name, attrs or {}))
        return result

    def results(
        self, op: str, operands: list[MirageTensor], made: Sequence[Mapping[str, Any]]
    ) -> list[MirageTensor]:
        """Apply an operator by its name without level and suffix; return what it gives.

        Raises:
            InputError: it is not known, or gives results of other sizes.
        """
        parts = _PARTS.fullmatch(op)
        if parts is None:
            return [self.apply(op, operands)]
        position = int(parts[2])
        if parts[1] == "concat":
            results = [self.joined(operands, position)]
        else:
            (x,) = operands
            sizes = [given["dim"][position] for given in made]
            if parts[1] == "chunk" and len(set(sizes)) > 1:
                raise InputError(f"{op} has parts of {sizes}, expected equal ones")
            results = self.pieces(x, position, sizes)
        for result, given in zip(results, made, strict=True):
            _check_sizes(op, result, given)
        return results

    def apply(self, op: str, operands: list[MirageTensor]) -> MirageTensor:
        """Apply an operator of one result."""
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
        if op in _WITHOUT_NUMBERS:
            raise InputError(f"Mirage's JSON has {op!r} without its numbers, so it could be any")
        raise InputError(f"Mirage's operator {op!r} is not known here")

    def joined(self, operands: Sequence[MirageTensor], position: int) -> MirageTensor:
        """Put tensors one after the other: each with zeros beside it, added up.

        Raises:
            InputError: the first has one element there, and no variable to stand before its others.
        """
        first, *others = operands
        is_behind = first.labels[position] is None and any(first.labels[position + 1 :])
        if self._has_order and is_behind:
            raise InputError(f"concat_{position} begins with one element, which is not known here")
        wanted = {p: label for p, label in enumerate(first.labels) if p != position}
        parts = [first, *(self._aligned(x, wanted, first) for x in others)]
        size = sum(part.sizes[position] for part in parts)
        sizes = [*first.sizes[:position], size, *first.sizes[position + 1 :]]
        into, start = self.fresh("i"), 0
        total: MirageTensor | None = None
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

    def pieces(self, x: MirageTensor, position: int, sizes: Sequence[int]) -> list[MirageTensor]:
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

    def _concat_matmul(
        self, w: MirageTensor, x: MirageTensor, y: MirageTensor, z: MirageTensor
    ) -> MirageTensor:
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

    def summed(self, x: MirageTensor, position: int) -> MirageTensor:
        """Sum over a position, which stays with size 1."""
        label = x.labels[position]
        if label is None:
            return x
        labels, sizes = list(x.labels), list(x.sizes)
        labels[position], sizes[position] = None, 1
        return self.emit("sum", [x], labels, sizes, {"over": (label,)})

    def summed_to(self, x: MirageTensor, position: int, size: int) -> MirageTensor:
        """Sum over a position in strides: so many elements are left."""
        label = x.labels[position]
        if label is None or x.sizes[position] == size:
            return x
        slow, fast = self.fresh("i"), self.fresh("i")
        parts = (x.sizes[position] // size, size)
        labels = [*x.labels[:position], fast, *x.labels[position + 1 :]]
        sizes = [*x.sizes[:position], size, *x.sizes[position + 1 :]]
        split = self.emit("split", [x], labels, sizes,
                          {"variable": label, "into": (slow, fast), "sizes": parts})  # fmt: skip
        return self.emit("sum", [split], split.labels, split.sizes, {"over": (slow,)})

    def _root_mean_square(self, x: MirageTensor) -> MirageTensor:
        attrs: Attrs = {"over": () if x.labels[-1] is None else (x.labels[-1],), "epsilon": 0.0}
        return self.emit("rms", [x], [*x.labels[:-1], None], [*x.sizes[:-1], 1], attrs)

    def _elementwise(self, op: str, a: MirageTensor, b: MirageTensor) -> MirageTensor:
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

    def _matmul(self, a: MirageTensor, b: MirageTensor) -> MirageTensor:
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

    def _aligned(
        self, b: MirageTensor, wanted: Mapping[int, str | None], a: MirageTensor
    ) -> MirageTensor:
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


def _check_sizes(op: str, result: MirageTensor, made: Mapping[str, Any]) -> None:
    """Check that a result has the sizes that a file says.

    Raises:
        InputError: it has others.
    """
    given = made["dim"][: made["num_dims"]]
    if list(result.sizes) != given:
        raise InputError(f"{op} has a result of {given}, expected {result.sizes}")


#: Sums in strides, and maxima, with the position that they are over.
_TO_DIMX = re.compile(r"reduction_([0-2])_to_dimx")
_MAX = re.compile(r"reduction_([0-2])_max")


class BlockLevel(Level):
    """The steps of a block graph.

    Args:
        fresh: makes names.
        loop: the number of iterations.
        strided: the part of a dim that sums in strides leave.
    """

    def __init__(self, fresh: Callable[[str], str], loop: int, strided: int) -> None:
        super().__init__(fresh, has_order=False)
        self._loop, self._strided = loop, strided
        self._after: set[str] = set()
        self._moved: dict[str, str] = {}  # by how much a running maximum moved, and which
        self._factors: dict[str, str] = {}  # the exponentials of these

    def read(self, tensor: Mapping[str, Any]) -> MirageTensor:
        """Return a tensor that a step or a store reads.

        Raises:
            InputError: it is by how much a maximum moved, which only rescaled sums read here.
        """
        result = self.tensors[tensor["guid"]]
        if result.name in self._moved or result.name in self._factors:
            raise InputError(
                "by how much a maximum moved is read by something else than the exponential that sums "
                "are rescaled by"
            )
        return result

    def step(
        self, op: str, given: Sequence[Mapping[str, Any]], made: Sequence[Mapping[str, Any]]
    ) -> None:
        """Add an operator by its name without level and suffix, tensors as the file has them.

        Raises:
            InputError: it is not known, or gives results of other sizes.
        """
        count = len(self.steps)
        accumulation = op.removeprefix("forloop_").removeprefix("accum_")
        if accumulation != op:
            results = [self._accumulation(op, accumulation, given)]
        else:
            results = self._computed(op, given, made)
        for tensor, result in zip(made, results, strict=True):
            _check_sizes(op, result, tensor)
            self.tensors[tensor["guid"]] = result
        for step in self.steps[count:]:
            if isinstance(step, Accumulate) or not self._after.isdisjoint(step.operands):
                self._after.update(step.outputs)

    def _computed(
        self, op: str, given: Sequence[Mapping[str, Any]], made: Sequence[Mapping[str, Any]]
    ) -> list[MirageTensor]:
        to_dimx, largest = _TO_DIMX.fullmatch(op), _MAX.fullmatch(op)
        first = self.tensors[given[0]["guid"]]
        if op == "exp" and first.name in self._moved:
            factor = MirageTensor(self.fresh("t"), first.labels, first.sizes)
            self._factors[factor.name] = self._moved[first.name]
            return [factor]
        operands = [self.read(tensor) for tensor in given]
        if to_dimx is not None:
            return [self.summed_to(operands[0], int(to_dimx[1]), self._strided)]
        if largest is not None:
            return self._largest(operands[0], int(largest[1]))
        return self.results(op, operands, made)

    def _largest(self, x: MirageTensor, position: int) -> list[MirageTensor]:
        """Return the largest elements so far, over a position too, and by how much they moved.

        Of one iteration, and after the loop, they are the largest of one tensor, and rescale nothing.
        """
        label = x.labels[position]
        over = () if label is None else (label,)
        labels = [*x.labels[:position], None, *x.labels[position + 1 :]]
        sizes = [*x.sizes[:position], 1, *x.sizes[position + 1 :]]
        result, moved = (MirageTensor(self.fresh("t"), labels, sizes) for _ in range(2))
        is_running = self._loop > 1 and x.name not in self._after
        if is_running:
            self.steps.append(RunningMax(x.name, result.name, over))
        else:
            self.steps.append(Operation("max", (x.name,), result.name, {"over": over}))
        self._moved[moved.name] = result.name if is_running else ""
        return [result, moved]

    def _accumulation(self, op: str, kind: str, given: Sequence[Mapping[str, Any]]) -> MirageTensor:
        """Return what an accumulator gives, of its name without the prefix.

        Raises:
            InputError: it is not known, or rescaled by something else than how much a maximum moved.
        """
        is_rescaled = kind.endswith("_rescale")
        x = self.read(given[0])
        rescale = self._rescale(op, given[1]) if is_rescaled else ""
        last = len(x.sizes) - 1
        match kind.removesuffix("_rescale"), is_rescaled:
            case (("nored" | "no_red"), _):
                return self._accumulated(x, "sum", rescale)
            case "red_ld_sum", _:
                return self._accumulated(self.summed(x, last), "sum", rescale)
            case "max", False:
                return self._accumulated(x, "max")
            case "red_ld_mean", False:
                total = self._accumulated(self.summed(x, last))
                mean: Attrs = {"value": 1.0 / (x.sizes[-1] * self._loop)}
                return self.emit("scale", [total], total.labels, total.sizes, mean)
            case "redtox_ld_sum", False:
                return self._accumulated(self.summed_to(x, last, self._strided))
            case "red_ld_rms", False:
                result = MirageTensor(self.fresh("t"), [*x.labels[:-1], None], [*x.sizes[:-1], 1])
                along = () if x.labels[-1] is None else (x.labels[-1],)
                self.steps.append(Accumulate(x.name, result.name, "rms", along))
                return result
        raise InputError(f"Mirage's accumulator {op!r} is not known here")

    def _rescale(self, op: str, tensor: Mapping[str, Any]) -> str:
        name = self.tensors[tensor["guid"]].name
        if name not in self._factors:
            raise InputError(
                f"{op} by something else than the exponential of how much a maximum moved is not known here"
            )
        return self._factors[name]

    def _accumulated(self, x: MirageTensor, kind: str = "sum", rescale: str = "") -> MirageTensor:
        result = MirageTensor(self.fresh("t"), x.labels, x.sizes)
        self.steps.append(Accumulate(x.name, result.name, kind, rescale=rescale))
        return result
