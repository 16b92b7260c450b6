"""μGraphs as Mirage's JSON, which ``mirage_reader`` reads.

What it has no form for is refused: numbers beside tensors, maxima of one iteration alone, concatenating
accumulators, merges and splits of dims, one part without the others, more than four dims, dims in an order
that no product can have.

Positions count from the end, as -1. A product contracts the last of its first operand with the last but one
of its second, what stands before is the batch, and elements of equal positions belong together. So each use
of a variable is an equation, and few assignments are left to try.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

from bench.mirage.mirage_steps import (
    MirageStep,
    check_stages,
    factor_of,
    left_of_strided,
    mirage_steps,
    moved_of,
    plain,
    with_last_sums,
)
from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dims, size_of, variables
from relational_tensat.mugraph.graph.mirage_levels import BINARY
from relational_tensat.mugraph.graph.mirage_reader import WIDE_TYPES
from relational_tensat.mugraph.graph.mugraph import AXES, Kernel, MuGraph
from relational_tensat.mugraph.graph.validity import (
    BlockStage,
    BlockTensors,
    block_tensors,
    kernel_tensors,
)

#: A tensor: the level, or the kernel within which it is, and its name.
Key: TypeAlias = tuple[str, str]
_Cell: TypeAlias = tuple[Key, str]
#: Mirage's tensors have so many dims at most.
MOST_DIMS = 4


class _Positions:
    """Equations between positions, and their solution."""

    def __init__(self) -> None:
        self._tensors: dict[Key, tuple[str, ...]] = {}
        self._parent: dict[_Cell, _Cell] = {}
        self._allowed: list[tuple[_Cell, frozenset[int]]] = []
        self._empty: list[tuple[Key, int]] = []
        self._ordered: list[Key] = []

    def add(self, key: Key, dims: Dims) -> None:
        self._tensors[key] = variables(dims)
        for variable in variables(dims):
            self._parent[key, variable] = (key, variable)

    def keep_order(self, key: Key) -> None:
        """Have a tensor's dims in the order in which they are in memory."""
        self._ordered.append(key)

    def equal(self, one: Key, other: Key, but: Iterable[str] = ()) -> None:
        for variable in set(self._tensors[one]) & set(self._tensors[other]) - set(but):
            self._join((one, variable), (other, variable))

    def apply(self, step: MirageStep, scope: str) -> None:
        result = scope, step.output
        operands = [(scope, name) for name in step.operands]
        if step.op in ("split", "concat"):
            self._parts(step, scope)
            return
        for operand in operands:
            self.equal(operand, result, step.over)
        if step.op in BINARY:
            self.equal(operands[0], operands[1])
        elif step.op == "rename":
            self._join((operands[0], step.over[0]), (result, step.into))
        elif step.op == "matmul":
            self._product(operands[0], operands[1], step.over[0])
        elif step.op == "concat_then_matmul":
            self._product(operands[0], operands[2], step.over[0])
            self._product(operands[1], operands[3], step.over[1])
        elif step.op == "reduction_max":
            self.equal(result, (scope, step.outputs[1]))
            if not step.over:
                self._empty.append((operands[0], -1))
        elif step.op != "reduction":
            self._last(operands[0], result, step)

    def _parts(self, step: MirageStep, scope: str) -> None:
        if step.op == "split":
            whole, own = (scope, step.operands[0]), step.over[0]
            parts = [((scope, name), into) for name, into in step.pieces]
        else:
            whole, own = (scope, step.output), step.into
            parts = [((scope, name), v) for name, v in zip(step.operands, step.over, strict=True)]
        for part, variable in parts:
            self.equal(whole, part, (own, variable))
            if variable:
                self._join((whole, own), (part, variable))

    def _last(self, operand: Key, result: Key, step: MirageStep) -> None:
        if step.over:
            self._allow(operand, step.over[0], {-1})
        elif step.op in ("rms_norm", "accum_red_ld_rms"):
            self._empty.append((operand, -1))
        if step.into:
            self._allow(result, step.into, {-1})
        if step.op == "rms_norm" and step.over:
            self._join((operand, step.over[0]), (result, step.over[0]))

    def _product(self, first: Key, second: Key, inner: str) -> None:
        self._allow(first, inner, {-1})
        self._allow(second, inner, {-2})
        shared = set(self._tensors[first]) & set(self._tensors[second])
        for variable in shared - {inner}:
            self._join((first, variable), (second, variable))
        for key, place in ((first, -2), (second, -1)):
            for variable in self._tensors[key]:
                if variable in shared - {inner}:
                    self._allow(key, variable, {-3, -4})
                elif variable != inner:
                    self._allow(key, variable, {place})

    def _allow(self, key: Key, variable: str, places: set[int]) -> None:
        self._allowed.append(((key, variable), frozenset(places)))

    def _join(self, one: _Cell, other: _Cell) -> None:
        self._parent[self._root(one)] = self._root(other)

    def _root(self, cell: _Cell) -> _Cell:
        while self._parent[cell] != cell:
            cell = self._parent[cell]
        return cell

    def solution(self) -> tuple[int, Mapping[Key, Mapping[str, int]]] | None:
        """Return in how many dims, as few as possible, variables stand where; None for nowhere."""
        fewest = max([1, *map(len, self._tensors.values())])
        for rank in range(fewest, MOST_DIMS + 1):
            chosen = self._solve(rank)
            if chosen is not None:
                places = {
                    key: {name: rank + chosen[self._root((key, name))] for name in names}
                    for key, names in self._tensors.items()
                }
                return rank, places
        return None

    def _solve(self, rank: int) -> dict[_Cell, int] | None:
        roots = dict.fromkeys(map(self._root, self._parent))
        domains = {root: set(range(-rank, 0)) for root in roots}
        for cell, places in self._allowed:
            domains[self._root(cell)] &= places
        for key, place in self._empty:
            for variable in self._tensors[key]:
                domains[self._root((key, variable))] -= {place}
        groups = [[self._root((key, v)) for v in vs] for key, vs in self._tensors.items()]
        if any(len(set(group)) < len(group) for group in groups):
            return None
        ordered = [[self._root((k, v)) for v in self._tensors[k]] for k in self._ordered]
        return _assigned(domains, groups, ordered)


def _assigned(
    domains: Mapping[_Cell, set[int]], groups: list[list[_Cell]], ordered: list[list[_Cell]]
) -> dict[_Cell, int] | None:
    """Return a position for each class of cells: different in each group, ascending in the ordered ones."""
    order = sorted(domains, key=lambda root: len(domains[root]))
    chosen: dict[_Cell, int] = {}

    def fits(root: _Cell) -> bool:
        apart, rows = (
            [[chosen[one] for one in group if one in chosen] for group in given if root in group]
            for given in (groups, ordered)
        )
        differ = all(len(set(places)) == len(places) for places in apart)
        return differ and all(places == sorted(places) for places in rows)

    def assign(number: int) -> bool:
        if number == len(order):
            return True
        root = order[number]
        for place in sorted(domains[root]):
            chosen[root] = place
            if fits(root) and assign(number + 1):
                return True
            del chosen[root]
        return False

    return chosen if assign(0) else None


#: How Mirage's files name accumulators: of today, and the saved ones of its benchmarks.
ACCUMULATORS = ("forloop_accum", "accum")
#: Its numbers of float16 then, and its bytes.
_FLOAT16 = {"forloop_accum": 941, "accum": 921}
_ELEMENT_BYTES = 2
#: The scope of tensors in device memory.
_DEVICE = ""
_THREADS = 128


def to_mirage(graph: MuGraph, accumulators: str = ACCUMULATORS[0]) -> list[dict[str, Any]]:
    """Return a μGraph, or a program, as a list of Mirage's kernel operators.

    Elements become float16, but for those that are float32 between kernels; ``accumulators`` is one of
    ``ACCUMULATORS``.

    Raises:
        InputError: it is malformed, or Mirage's JSON has no form for something; says for what.
    """
    if graph.conditions:
        raise InputError(
            f"{graph.name}: elements of {min(graph.conditions)} are bools, as none are in Mirage's JSON"
        )
    return _MirageWriter(plain(graph), accumulators).document()


@dataclass(slots=True)
class _Level:
    """One level while it is written: Mirage's tensors by name, and their bytes so far."""

    scope: str
    tensors: dict[str, dict[str, Any]] = field(default_factory=dict)
    used_bytes: int = 0


class _MirageWriter:
    def __init__(self, graph: MuGraph, accumulators: str) -> None:
        self._graph = graph
        self._accumulators = accumulators
        self._device = kernel_tensors(graph)
        self._blocks: dict[str, BlockTensors] = {}
        self._numbers = count(1)
        self._steps = list(mirage_steps(graph.name, graph.steps, graph.outputs))
        self._inner: dict[str, list[MirageStep]] = {}
        scopes = [kernel.name for kernel in graph.kernels]
        if "" in scopes or len(set(scopes)) < len(scopes):
            raise InputError(f"{graph.name}: kernels need names of their own")
        for kernel in graph.kernels:
            self._blocks[kernel.name] = tensors = block_tensors(kernel, self._device)
            for largest in tensors.running:
                for name in (moved_of(largest), factor_of(largest)):
                    tensors.dims[name] = tensors.dims[largest]
                    tensors.stages[name] = BlockStage.LOOP
            if tensors.partial:
                raise InputError(
                    f"{graph.name}: {kernel.name}: the last tile of {min(tensors.partial)} is smaller, "
                    "Mirage's divide their dims"
                )
            stored = [saver.tile for saver in kernel.block.savers]
            steps = mirage_steps(kernel.name, kernel.block.steps, stored)
            self._inner[kernel.name] = [s for s in steps if isinstance(s, MirageStep)]
        solution = self._equations().solution()
        if solution is None:
            raise InputError(
                f"{graph.name}: no order of at most {MOST_DIMS} dims is one of Mirage's operators, which "
                "multiply the last dim with the last but one, and align others by position"
            )
        self._rank, self._places = solution

    def _equations(self) -> _Positions:
        positions = _Positions()
        for name, dims in self._device.items():
            positions.add((_DEVICE, name), dims)
        for name in dict.fromkeys((*self._graph.inputs, *self._graph.outputs)):
            positions.keep_order((_DEVICE, name))
        for step in self._steps:
            if isinstance(step, MirageStep):
                positions.apply(step, _DEVICE)
            else:
                self._equations_of(step, positions)
        return positions

    def _equations_of(self, kernel: Kernel, positions: _Positions) -> None:
        scope, dims = kernel.name, self._blocks[kernel.name].dims
        steps = self._inner[scope]
        loaded = [iterator.output for iterator in kernel.block.iterators]
        for name in dict.fromkeys((*loaded, *(name for s in steps for name in s.outputs))):
            positions.add((scope, name), dims[name])
        for iterator in kernel.block.iterators:
            positions.equal((_DEVICE, iterator.tensor), (scope, iterator.output))
        for step in steps:
            check_stages(scope, step, self._blocks[scope].stages)
            positions.apply(step, scope)
        for saver in kernel.block.savers:
            positions.equal((scope, saver.tile), (_DEVICE, saver.output))

    def document(self) -> list[dict[str, Any]]:
        """Return the kernel operators, inputs first, outputs last."""
        level = _Level(_DEVICE)
        operators: list[dict[str, Any]] = []
        for name, dims in self._graph.inputs.items():
            made = self._made(level, name, dims)
            operators.append(_operator("kn_input_op", [], [made], input_map=_axes((), -1),
                                       input_strides=_strides(made)))  # fmt: skip
        for step in self._steps:
            if isinstance(step, Kernel):
                operators.append(self._customized(step, level))
            else:
                operators += self._applied(step, level, self._device)
        for name in self._graph.outputs:
            given = level.tensors[name]
            operators.append(_operator("kn_output_op", [given], [], output_map=_axes((), -1),
                                       output_strides=_strides(given)))  # fmt: skip
        return operators

    def _applied(
        self, step: MirageStep, level: _Level, dims: Mapping[str, Dims]
    ) -> Iterator[dict[str, Any]]:
        """Yield the operator of a step; none where it only has another name for a tensor."""
        if step.op == "rename":
            level.tensors[step.output] = level.tensors[step.operands[0]]
            return
        op = step.op
        if op == "sub" and level.scope == _DEVICE:
            raise InputError(f"{step.output}: Mirage's JSON has sub within kernels only")
        if op == "scale":
            raise InputError(
                f"{step.output} = scale (value={step.number}) has no form in Mirage's JSON"
            )
        if op in ("reduction", "reduction_max"):
            places = self._places[(level.scope, step.operands[0])]
            place = places[step.over[0]] if step.over else self._rank - 1
            if place == MOST_DIMS - 1:
                kind = "maximum" if op == "reduction_max" else "sum"
                raise InputError(f"{step.output}: Mirage's JSON has no {kind} over a fourth dim")
            op = op.replace("reduction", f"reduction_{place}")
        if op in ("split", "concat"):
            op = self._part_op(step, level, dims)
        if op.startswith("accum_"):
            op = self._accumulators + op.removeprefix("accum")
        operands = [level.tensors[name] for name in step.operands]
        made = [self._made(level, name, dims[name]) for name in step.outputs]
        yield _operator(f"{'tb' if level.scope else 'kn'}_{op}_op", operands, made)

    def _part_op(self, step: MirageStep, level: _Level, dims: Mapping[str, Dims]) -> str:
        """Return Mirage's name of a split, of equal parts a chunk, or of a concatenation."""
        is_split = step.op == "split"
        name, variable = (step.operands[0], step.over[0]) if is_split else (step.output, step.into)
        place = self._places[(level.scope, name)][variable]
        if place == MOST_DIMS - 1:
            raise InputError(f"{name}: Mirage's JSON has no parts of a fourth dim")
        if not is_split:
            return f"concat_{place}"
        sizes = [size_of(dims[part], into) if into else 1 for part, into in step.pieces]
        if sum(sizes) != size_of(dims[name], variable):
            raise InputError(
                f"{step.output}: a part of {name} alone; Mirage's JSON has splits into all parts"
            )
        return f"{'split' if len(set(sizes)) > 1 else 'chunk'}_{place}"

    def _customized(self, kernel: Kernel, device: _Level) -> dict[str, Any]:
        block, tensors = kernel.block, self._blocks[kernel.name]
        level = _Level(kernel.name)
        operators: list[dict[str, Any]] = []
        for iterator in block.iterators:
            if iterator.windows:
                raise InputError(
                    f"{kernel.name}: {iterator.output}: Mirage's JSON has no loads of a part"
                )
            places = self._places[(_DEVICE, iterator.tensor)]
            made = self._made(level, iterator.output, tensors.dims[iterator.output])
            operators.append(_operator(
                "tb_input_op", [], [made], dtensor=device.tensors[iterator.tensor],
                input_map=_axes([places.get(name, -1) for name in iterator.imap], -1),
                forloop_dim=places.get(iterator.fmap, -1),
            ))  # fmt: skip
        steps = with_last_sums(
            self._inner[kernel.name], {saver.tile for saver in block.savers},
            lambda name, variable: self._places[(kernel.name, name)][variable] == self._rank - 1,
            lambda total: self._mean(kernel, total),
        )  # fmt: skip
        for step in steps:
            operators += self._applied(step, level, tensors.dims)
        for saver in block.savers:
            if tensors.stages[saver.tile] is not BlockStage.AFTER:
                raise InputError(
                    f"{kernel.name}: {saver.tile} is stored without an accumulator, as nothing is in "
                    "Mirage's JSON"
                )
            given = level.tensors[saver.tile]
            made = self._made(device, saver.output, saver.dims)
            places = self._places[(_DEVICE, saver.output)]
            operators.append(_operator(
                "tb_output_op", [given], [], dtensor=made,
                output_map=_axes([places.get(name, -1) for name in saver.omap], -1),
            ))  # fmt: skip
        bgraph = {
            "graph_level": "thread_block_graph", "grid_dim": _axes(block.grid, 1),
            "block_dim": _axes((_THREADS,), 1), "forloop_range": block.loop,
            "reduction_dimx": left_of_strided(kernel.name, steps, tensors), "operators": operators,
            "smem_offset": level.used_bytes,
        }  # fmt: skip
        read, stored = (
            [device.tensors[name] for name in names] for names in (kernel.operands, kernel.outputs)
        )
        return _operator("kn_customized_op", read, stored, bgraph=bgraph)

    def _mean(self, kernel: Kernel, total: MirageStep) -> float | None:
        """Return what makes an accumulator the mean of the last dim and all iterations; None if nothing."""
        (operand, *_), loop = total.operands, kernel.block.loop
        if total.op == "accum_red_ld_sum":
            (last,) = total.over
            return 1.0 / (size_of(self._blocks[kernel.name].dims[operand], last) * loop)
        has_last = self._rank - 1 in self._places[(kernel.name, operand)].values()
        return 1.0 / loop if total.op == "accum_nored" and not has_last else None

    def _made(self, level: _Level, name: str, dims: Dims) -> dict[str, Any]:
        places = self._places[(level.scope, name)]
        sizes = [1] * self._rank
        for dim in dims:
            sizes[places[dim.variable]] = dim.size
        data_type = _FLOAT16[self._accumulators]
        if level.scope == _DEVICE and name in self._graph.wide:
            data_type = WIDE_TYPES[data_type]
        tensor: dict[str, Any] = {
            "data_type": data_type, "dim": [*sizes, *[0] * (MOST_DIMS - self._rank)],
            "guid": next(self._numbers), "num_dims": self._rank,
            "layout": "SmemRowMajor" if level.scope else "DmemRowMajor",
        }  # fmt: skip
        if level.scope:
            stages = self._blocks[level.scope].stages
            tensor["after_accum"] = stages[name] is BlockStage.AFTER
            tensor["smem_offset"] = level.used_bytes
            level.used_bytes += math.prod(sizes) * _ELEMENT_BYTES
        level.tensors[name] = tensor
        return tensor


def _operator(
    op_type: str, given: list[dict[str, Any]], made: list[dict[str, Any]], **others: Any
) -> dict[str, Any]:
    return {"op_type": op_type, "input_tensors": given, "output_tensors": made, **others}


def _axes(numbers: Sequence[int], other: int) -> dict[str, int]:
    return {**dict.fromkeys(AXES, other), **dict(zip(AXES, numbers, strict=False))}


def _strides(tensor: Mapping[str, Any]) -> list[int]:
    sizes = tensor["dim"][: tensor["num_dims"]]
    return [math.prod(sizes[place + 1 :]) for place in range(len(sizes))]
