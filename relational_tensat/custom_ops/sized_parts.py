"""Parts of a model with dynamic dims: kernels of fixed sizes, in loops whose sizes are arguments.

A part is searched at one of the sizes that the model is known at, and looked up at all others. Of its index
variables those are loops whose sizes differ from size to size, and those outside of them in memory. No step
may reduce, window or relabel a loop's variable, and all results have it. So each turn of the loops computes
the same of its own operands, for all sizes. A turn is a program of fixed sizes, with a kernel like any
other. Where nothing of fixed size lies within, and all operands have all dims, a turn is a block of
elements. A part with attributes that depend on sizes does not qualify, but for reshapes: a dim that is a
multiple of a loop's size is that loop, and one within.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

import numpy as np

from relational_tensat.base.errors import VerificationError
from relational_tensat.custom_ops.library import MOST_LOOPS, Shape, multiple_of_loop
from relational_tensat.custom_ops.part_calls import graph_of
from relational_tensat.custom_ops.timed_part import TimedPart, node_of
from relational_tensat.formats.dynamic.writer import short_shape
from relational_tensat.formats.onnx_write import write_skeletons
from relational_tensat.mugraph.fusion.candidates import (
    KernelCandidate,
    pattern_hash,
    with_numbers,
)
from relational_tensat.mugraph.fusion.kernel_builder import (
    by_rows,
    computes_nodes,
    kernel_rule,
    stored_in_order,
)
from relational_tensat.mugraph.fusion.own_kernel import OwnKernel
from relational_tensat.mugraph.graph.dims import Dim, Dims, count, size_of, without
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.mugraph.graph.mugraph_json import content_hash
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernel_finder import UnfitError
from relational_tensat.mugraph.kernels.c_tiles import named_by
from relational_tensat.tensor import Array, Attrs, Graph, Node, TensorType, ValueType

#: A turn computes so many elements side by side at least: a vector; and so many of a block.
_FEWEST_ELEMENTS, BLOCK = 8, 512
_SEED = 7_000_000
#: A program is compared with its nodes at the smallest sizes, so many, and at others of as few elements.
_FEWEST_SIZES, _FEW_ELEMENTS = 3, 1 << 20


@dataclass(frozen=True, slots=True)
class _Form:
    """The dynamic dims of a part.

    Attributes:
        loops: their variables, the outermost first.
        sizes: of loops, 0 where that is dynamic.
        at: the sizes of loops at each size of the model.
        operands, results, block: as ``OwnKernel`` has them.
    """

    loops: tuple[str, ...]
    sizes: tuple[int, ...]
    at: tuple[tuple[int, ...], ...]
    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]
    block: int

    def turn(self, dims: Dims) -> Dims:
        """Return the dims of a tensor within a turn."""
        inner = without(dims, self.loops)
        return (Dim(self.loops[-1], BLOCK),) if self.block and len(inner) < len(dims) else inner


class SizedParts:
    """The parts of a graph that is known at several sizes.

    Attributes:
        searched: the graph at sizes of which few are 1, or those of another dim: there parts are sought.

    Args:
        graphs: the same graph at each size; the first is what parts are timed at.
        opset: of the file that has the functions of kernels.
    """

    def __init__(self, graphs: Sequence[Graph], opset: int) -> None:
        self._graphs, self._opset = [with_numbers(graph) for graph in graphs], opset
        self._nodes = [{node.outputs: node for node in graph.nodes} for graph in self._graphs]
        self.searched = min(self._graphs, key=self._coincidences)
        self._found: dict[tuple[tuple[str, ...], ...], tuple[KernelCandidate, _Form]] = {}

    def at_base(self, candidate: KernelCandidate) -> KernelCandidate:
        """Return a part of ``searched`` at the sizes that it is timed at.

        Raises:
            UnfitError: no kernel is made of it whose sizes are arguments; says why.
        """
        candidate = replace(candidate, said=self._said(candidate))
        form = self._form(candidate)
        base = self._at(candidate, 0)
        self._found[_key(base)] = candidate, form
        return base

    def pattern(self, base: KernelCandidate) -> str:
        """Return a hash that parts share which have one kernel."""
        _, form = self._found[_key(base)]
        return f"{pattern_hash(base)} {form}"

    def make(self, base: KernelCandidate, *, was_verified: bool = False) -> OwnKernel:
        """Return the kernel of a part.

        Args:
            base: the part, at the sizes that it is timed at.
            was_verified: whether this very code has made and verified the kernel of an equal part before.

        Raises:
            RelationalTensatError: it has no such form; says why.
        """
        candidate, form = self._found[_key(base)]
        program = candidate.program
        inputs = {name: form.turn(dims) for name, dims in program.inputs.items()}
        turn = replace(program, inputs=inputs)
        kept = form.loops[:-1] if form.block else form.loops
        orders = [tuple(n for n in order if n not in kept) for order in candidate.orders]
        if not was_verified:
            self._check(candidate, form)
        graph = stored_in_order(
            by_rows(turn, is_for_one=True, was_verified=was_verified), turn, orders
        )
        content = f"{content_hash(graph)} {form.sizes} {form.operands} {form.results} {form.block}"
        key = f"k{hashlib.sha256(content.encode()).hexdigest()[:16]}"
        self._check_functions(candidate, key)
        rule = kernel_rule(base, key, f"fused-{key}")
        return OwnKernel(
            key, graph, (rule,), candidate.dtype, form.operands, form.results, None,
            loops=form.sizes, block=form.block,
        )  # fmt: skip

    def parts_at(self, parts: Sequence[TimedPart], size: int) -> list[TimedPart]:
        """Return parts at one of the sizes, by its place in ``graphs``."""
        result = []
        for part in parts:
            places = tuple(self._at(place, size) for place in part.places)
            nodes = tuple(node_of(place, part.kernel.key) for place in places)
            result.append(replace(part, places=places, nodes=nodes))
        return result

    def _at(self, candidate: KernelCandidate, size: int) -> KernelCandidate:
        nodes = tuple(self._nodes[size][node.outputs] for node in candidate.nodes)
        return replace(candidate, nodes=nodes, graph=self._graphs[size])

    def _coincidences(self, graph: Graph) -> tuple[int, int]:
        """Return how many dynamic dims are 1 in a graph, and how many are as large as one that is not."""
        dynamic, fixed = [], set()
        for name, kind in graph.types.items():
            if isinstance(kind, TensorType):
                for size, own in zip(kind.shape, self._varying(name), strict=True):
                    if len(own) > 1:
                        dynamic.append(size)
                    else:
                        fixed.add(size)
        return dynamic.count(1), len(fixed.intersection(dynamic))

    def _varying(self, name: str) -> list[set[int]]:
        """Return the sizes of each dim of a value."""
        return [set(sizes) for sizes in zip(*self._shapes(name), strict=True)]

    def _shapes(self, name: str) -> list[Shape]:
        return [_shape(graph.types[name]) for graph in self._graphs if name in graph.types]

    def _form(self, candidate: KernelCandidate) -> _Form:
        """Return what is dynamic of a part.

        Raises:
            UnfitError: it depends on sizes in a way that no loop is.
        """
        program, made = candidate.program, kernel_tensors(candidate.program)
        tensors = list(zip(candidate.inputs, program.inputs.values(), strict=True))
        for name, output, order in zip(
            candidate.outputs, program.outputs, candidate.orders, strict=True
        ):
            tensors.append((name, tuple(Dim(v, size_of(made[output], v)) for v in order)))
        grouped = [_grouped(_shape(candidate.graph.types[name]), dims) for name, dims in tensors]
        varying = [self._varying(name) for name, _ in tensors]
        dynamic: set[str] = set()
        for groups, sizes in zip(grouped, varying, strict=True):
            for group, own in zip(groups, sizes, strict=True):
                if len(own) > 1 and not group:
                    raise UnfitError("a dim that depends on sizes is 1 where parts are sought")
                dynamic.update(dim.variable for dim in group[:1] if len(own) > 1)
        if not dynamic:
            raise UnfitError("nothing of it depends on sizes")
        results = [dims for _, dims in tensors[len(candidate.inputs) :]]
        loops = self._loops(dynamic, [dims for _, dims in tensors], results, program)
        shapes = [
            tuple(map(partial(_symbol, loops), groups, _shape(candidate.graph.types[name])))
            for groups, (name, _) in zip(grouped, tensors, strict=True)
        ]
        places = range(len(self._graphs))
        at = tuple(self._sizes_at(loops, tensors, grouped, place) for place in places)
        fixed = tuple(0 if v in dynamic else at[0][n] for n, v in enumerate(loops))
        split, block = len(candidate.inputs), 0
        if min(count(without(dims, loops)) for dims in results) < _FEWEST_ELEMENTS:
            if any(dims and tuple(d.variable for d in dims) != loops for _, dims in tensors):
                raise UnfitError(f"fewer than {_FEWEST_ELEMENTS} elements lie side by side")
            block = BLOCK
        return _Form(loops, fixed, at, tuple(shapes[:split]), tuple(shapes[split:]), block)

    def _said(self, candidate: KernelCandidate) -> dict[str, Attrs]:
        """Return the shapes of reshapes that depend on sizes, as they hold at all of them.

        Raises:
            UnfitError: something else depends on sizes.
        """
        said: dict[str, Attrs] = {}
        for node in candidate.nodes:
            if self._depends(node, candidate.graph):
                shapes = [self._shapes(name) for name in (*node.outputs, *node.inputs)]
                short = short_shape(*shapes) if node.op == "reshape" else None
                if short is None:
                    raise UnfitError(f"{node.op} has attributes that depend on sizes")
                said[node.outputs[0]] = {"shape": tuple(short)}
        return said

    def _depends(self, node: Node, graph: Graph) -> bool:
        """Whether a node has other attributes at other sizes.

        Raises:
            UnfitError: it is another one, or has another constant.
        """
        depends = False
        for nodes, there in zip(self._nodes, self._graphs, strict=True):
            other = nodes.get(node.outputs)
            if other is None or (other.op, other.inputs) != (node.op, node.inputs):
                raise UnfitError(f"{node.op} is another operator at other sizes")
            depends |= other.attrs != node.attrs
            for name in (name for name in node.inputs if name in graph.weights):
                weight, its = graph.weights[name], there.weights.get(name)
                if its is None or its.type != weight.type or not _is_same(weight.data, its.data):
                    raise UnfitError(f"{node.op} has a constant that depends on sizes")
        return depends

    def _loops(
        self, dynamic: set[str], tensors: Sequence[Dims], results: Sequence[Dims], program: MuGraph
    ) -> tuple[str, ...]:
        """Return the variables of loops: dynamic ones, and those outside of them in memory."""
        names, n_known = set(dynamic), 0
        while len(names) > n_known:
            n_known = len(names)
            for dims in tensors:
                last = max((n for n, dim in enumerate(dims) if dim.variable in names), default=-1)
                names.update(dim.variable for dim in dims[: last + 1])
        steps = [step for step in program.steps if isinstance(step, Operation)]  # windows, too
        if names & named_by(steps):
            raise UnfitError("it goes over a dim that depends on sizes, or over one outside of it")
        if any(not names <= {dim.variable for dim in dims} for dims in results):
            raise UnfitError("a result lacks a dim that depends on sizes")
        if len(names) > MOST_LOOPS:
            raise UnfitError(f"{len(names)} loops, expected {MOST_LOOPS} at most")
        return tuple(dim.variable for dim in results[0] if dim.variable in names)

    def _sizes_at(
        self,
        loops: tuple[str, ...],
        tensors: Sequence[tuple[str, Dims]],
        grouped: Sequence[Sequence[Dims]],
        size: int,
    ) -> tuple[int, ...]:
        """Return the sizes of loops where the model has one of its sizes.

        Raises:
            UnfitError: two dims of one index variable have different ones there.
        """
        found: dict[str, int] = {}
        for (name, _), groups in zip(tensors, grouped, strict=True):
            for group, own in zip(groups, _shape(self._graphs[size].types[name]), strict=True):
                if len(group) == 1 or (group and group[0].variable in loops):
                    there, rest = divmod(own, count(group[1:]))
                    if rest or found.setdefault(group[0].variable, there) != there:
                        raise UnfitError("dims of one index variable have different sizes")
        return tuple(found[name] for name in loops)

    def _check(self, candidate: KernelCandidate, form: _Form) -> None:
        """Compare the program with the nodes in float64, at several sizes.

        Raises:
            VerificationError: it computes something else.
        """

        def elements(size: int) -> int:
            kinds = self._graphs[size].types
            shapes = (_shape(kinds[name]) for node in candidate.nodes for name in node.outputs)
            return sum(int(np.prod(shape)) for shape in shapes)

        for place, size in enumerate(sorted(range(len(self._graphs)), key=elements)):
            if place >= _FEWEST_SIZES and elements(size) > _FEW_ELEMENTS:
                break
            own = dict(zip(form.loops, form.at[size], strict=True))
            inputs = {
                name: tuple(Dim(d.variable, own.get(d.variable, d.size)) for d in dims)
                for name, dims in candidate.program.inputs.items()
            }
            there = self._at(candidate, size)
            there = replace(there, program=replace(candidate.program, inputs=inputs))
            if not computes_nodes(there, _SEED):
                raise VerificationError(f"its program computes something else at {own}")

    def _check_functions(self, candidate: KernelCandidate, key: str) -> None:
        """Check that the kernel is one function in a file, at all sizes.

        Raises:
            UnfitError: it is not.
        """
        places = [self._at(candidate, size) for size in range(len(self._graphs))]
        calls = [graph_of(place, [node_of(place, key)]) for place in places]
        files = [file for file, _ in write_skeletons(calls, self._opset)]
        texts = [
            [f.SerializeToString(deterministic=True) for f in file.functions] for file in files
        ]
        if len(list(groupby(texts))) > 1:
            raise UnfitError("its function depends on sizes")


def _grouped(shape: Shape, dims: Dims) -> list[Dims]:
    """Return the index variables of each dim of a shape, in order.

    Raises:
        UnfitError: a dim is no product of them.
    """
    left, groups = list(dims), []
    for size in shape:
        group: list[Dim] = []
        while left and count(tuple(group)) < size:
            group.append(left.pop(0))
        if count(tuple(group)) != size:
            raise UnfitError(f"a dim of {size} is no product of index variables")
        groups.append(tuple(group))
    return groups


def _symbol(loops: Sequence[str], group: Dims, size: int) -> int:
    """Return the size of a dim, or below 0 the loop that it is a multiple of.

    Raises:
        UnfitError: it is of several loops.
    """
    own = [dim for dim in group if dim.variable in loops]
    if not own:
        return size
    if own != [*group[:1]]:
        raise UnfitError("a dim is of several loops, or has one within")
    return multiple_of_loop(loops.index(group[0].variable), count(group[1:]))


def _is_same(one: Array | None, other: Array | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))


def _shape(kind: ValueType) -> Shape:
    assert isinstance(kind, TensorType)
    return kind.shape


def _key(candidate: KernelCandidate) -> tuple[tuple[str, ...], ...]:
    return (candidate.outputs, *(node.outputs for node in candidate.nodes))
