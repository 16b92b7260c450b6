"""Writing a graph with dynamic dimensions: as the file that it is at each of several sizes, in one.

The graph is written at each size. These files are the same nodes; where a constant is another one at
another size, nodes that compute it from the shapes of the inputs take its place. So every operator is
written as it always is, and what cannot be said for all sizes shows as a difference that has no expression.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np
import onnx

from relational_tensat.formats.dynamic.size_nodes import (
    ComputedValues,
    SizeNodes,
    names_of,
    sizes_in,
    values_by_name,
)
from relational_tensat.formats.dynamic.sized_model import DynamicModel, SizeError
from relational_tensat.formats.onnx_frame import plan_names
from relational_tensat.formats.onnx_metadata import read_imports
from relational_tensat.formats.onnx_names import FreshNames, all_names, captured_names, rename_node
from relational_tensat.formats.onnx_types import array_of, to_value_info
from relational_tensat.formats.onnx_write import write_skeletons
from relational_tensat.tensor import Graph, TensorType
from relational_tensat.tensor.operators.base import tensor
from relational_tensat.tensor.types import Array

#: As a bound of a Slice: the end of a dimension of any size.
_END = 2**63 - 1


def write_dynamic(
    model: DynamicModel, graphs: Sequence[Graph], opset: int | None = None
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Return a graph as an ONNX model with dynamic dimensions, unchecked, as ``write_skeletons`` does.

    Args:
        graphs: the same graph at each of ``model.all``; its inputs are the model's and values that the
            model computes from sizes.
        opset: the version of the default operator set, if it is not to be chosen.

    Raises:
        SizeError: something in it depends on sizes in a way that cannot be written.
        ModelError: it has no ONNX form at all.
    """
    try:
        return _Joiner(model, graphs, opset, takes_shapes=True).join()
    except _CycleError:
        return _Joiner(model, graphs, opset, takes_shapes=False).join()


class _CycleError(SizeError):
    """A value is computed from its own shape."""


class _Joiner:
    """Joins files of several sizes.

    Args:
        takes_shapes: whether shapes of values that the model computes are taken, where these still exist.
    """

    def __init__(
        self, model: DynamicModel, graphs: Sequence[Graph], opset: int | None, *, takes_shapes: bool
    ) -> None:
        self._model = model
        self._graphs = graphs
        skeletons = write_skeletons(graphs, opset)
        self._files = [file for file, _ in skeletons]
        self._large = [weights for _, weights in skeletons]
        self._file, self._large_weights = skeletons[0]
        self._constants = [values_by_name(file) for file in self._files]
        #: The names of values in the graph.
        self._values = {name: value for value, name in plan_names(graphs[0]).names.items()}
        names = names_of(self._file) | names_of(model.frame) | all_names(self._file.graph)
        self._fresh = FreshNames(names | all_names(model.frame.graph))
        version = read_imports(self._file.opset_import)[""]
        self._sizes = SizeNodes(model.dimensions, version, self._fresh)
        present = {
            value: name
            for name, value in self._values.items()
            if takes_shapes and value not in model.base.computed  # these get other names
        }
        self._computed = ComputedValues(model, version, self._sizes, self._fresh, present)

    def join(self) -> tuple[onnx.ModelProto, dict[str, Array]]:
        self._check_alike()
        for index, node in enumerate(self._file.graph.node):
            self._join_node(index, node)
        self._replace_computed()
        self._declare()
        graph = self._file.graph
        nodes = _ordered([*self._sizes.nodes, *graph.node])
        del graph.node[:]
        graph.node.extend(nodes)
        graph.initializer.extend(self._sizes.initializers)
        self._drop_unused()
        return self._file, self._large_weights

    def _check_alike(self) -> None:
        """Check that the files have the same nodes, and the same functions.

        Raises:
            SizeError: they have not.
        """
        for file in self._files[1:]:
            if _functions(file) != _functions(self._file):
                raise SizeError("a local function is another one at other sizes")
            if len(file.graph.node) != len(self._file.graph.node):
                raise SizeError("the graph is written with other nodes at other sizes")
            for node, other in zip(self._file.graph.node, file.graph.node, strict=True):
                form = (other.op_type, other.domain, list(other.output), len(other.input))
                if (node.op_type, node.domain, list(node.output), len(node.input)) != form:
                    raise SizeError(f"{_label(node)} is written as {other.op_type} at other sizes")

    def _join_node(self, index: int, node: onnx.NodeProto) -> None:
        nodes = [file.graph.node[index] for file in self._files]
        for other in nodes[1:]:
            if _attributes(other) != _attributes(node):
                raise SizeError(f"{_label(node)} has attributes that depend on sizes")
        for place in range(len(node.input)):
            names = [other.input[place] for other in nodes]
            values = [self._constant(at, name) for at, name in enumerate(names)]
            if values[0] is not None and all(value is not None for value in values):
                arrays = [value for value in values if value is not None]
                if not _all_equal(arrays):
                    node.input[place] = self._sized(node, place, arrays)
            elif len(set(names)) > 1:
                raise SizeError(f"{_label(node)} has other operands at other sizes")

    def _constant(self, at: int, name: str) -> Array | None:
        """Return an initializer's elements if it may differ from size to size: weights do not."""
        tensor = self._constants[at].get(name)
        if tensor is None or self._values.get(name) in self._graphs[0].weights:
            return None
        large = self._large[at].get(name)  # its data is not in the tensor
        return array_of(tensor) if large is None else large

    def _sized(self, node: onnx.NodeProto, place: int, arrays: Sequence[Array]) -> str:
        """Return the name of what an operand is that is another constant at each size.

        Raises:
            SizeError: it is no sizes.
        """
        expressions = sizes_in(arrays, self._model)
        if node.op_type == "Reshape" and place == 1:
            shape = None if _allows_zero(node) else short_shape(arrays, self._shapes(node.input[0]))
            if shape is not None:
                return self._sizes.constant(np.array(shape, np.int64))
        if node.op_type == "Slice" and place in (1, 2):
            bounds = self._bounds_from_the_end(node, arrays, is_end=place == 2)
            if bounds is not None:
                return self._sizes.constant(np.array(bounds, np.int64))
        if expressions is None or not all(map(self._sizes.can_express, expressions)):
            filled = self._filled(arrays)
            if filled:
                return filled
            raise SizeError(f"{_label(node)} has a constant that depends on sizes")
        return self._sizes.tensor(expressions, arrays[0].ndim, str(arrays[0].dtype))

    def _bounds_from_the_end(
        self, node: onnx.NodeProto, bounds: Sequence[Array], *, is_end: bool
    ) -> list[int] | None:
        """Return where a Slice begins or ends, counted from the end of a dimension where that varies.

        None where a bound varies in another way, or the slice goes backward.
        """
        operand = self._shapes(node.input[0])
        n_bounds = bounds[0].size
        axes = self._integers(node, 3, list(range(n_bounds)))
        steps = self._integers(node, 4, [1] * n_bounds)
        if not operand or len(axes) != n_bounds or any(step < 1 for step in steps or [0]):
            return None
        result: list[int] = []
        for place, axis in enumerate(axes):
            column = {int(bound[place]) for bound in bounds}
            before_end = {
                int(bound[place]) - shape[axis]
                for bound, shape in zip(bounds, operand, strict=True)
            }
            if len(column) == 1:
                result += column
            elif is_end and min(before_end) >= 0:
                result.append(_END)
            elif len(before_end) == 1 and max(before_end) < 0:
                result += before_end
            else:
                return None
        return result

    def _integers(self, node: onnx.NodeProto, place: int, default: list[int]) -> list[int]:
        """Return an operand that is known; none where it is not."""
        if len(node.input) <= place or not node.input[place]:
            return default
        tensor = self._constants[0].get(node.input[place])
        return [] if tensor is None else [int(number) for number in array_of(tensor)]

    def _shapes(self, name: str) -> list[tuple[int, ...]]:
        """Return the shapes of a tensor at each size; none where it is not one of the graph's."""
        kinds = [graph.types.get(self._values.get(name, "")) for graph in self._graphs]
        shapes = [kind.shape for kind in kinds if isinstance(kind, TensorType)]
        return shapes if len(shapes) == len(kinds) else []

    def _filled(self, arrays: Sequence[Array]) -> str:
        """Return the name of a tensor of one number whose shape depends on sizes; "" for others."""
        first = arrays[0]
        if any(array.size == 0 for array in arrays) or not _all_equal(
            [array.reshape(-1)[:1] for array in arrays]
        ):
            return ""
        if any(bool((array != array.flat[0]).any()) for array in arrays):
            return ""
        shapes = [np.array(array.shape, np.int64) for array in arrays]
        same_rank = len({shape.size for shape in shapes}) == 1
        expressions = sizes_in(shapes, self._model) if same_rank else None
        if expressions is None or not all(map(self._sizes.can_express, expressions)):
            return ""
        number = self._sizes.constant(first.reshape(-1)[0])
        return self._sizes.emit("Expand", [number, self._sizes.tensor(expressions, 1, "int64")])

    def _replace_computed(self) -> None:
        """Compute what is computed from sizes, in place of the inputs that stood for it."""
        graph = self._file.graph
        used = {name for node in graph.node for name in node.input}
        used |= {name for node in graph.node for name in captured_names(node)}
        names = {
            name: self._computed.write(name) for name in self._model.base.computed if name in used
        }
        for node in graph.node:
            rename_node(node, names, (), self._fresh)
        for value in graph.output:  # one that is computed from sizes alone
            if value.name in self._model.base.computed:
                name = self._computed.write(value.name)
                graph.node.append(onnx.helper.make_node("Identity", [name], [value.name]))

    def _declare(self) -> None:
        """Declare inputs and outputs as the model does; other types without what depends on sizes."""
        graph, frame = self._file.graph, self._model.frame.graph
        declared = {value.name: value for value in frame.input}
        inputs = [
            declared.get(value.name, value)
            for value in graph.input
            if value.name not in self._model.base.computed
        ]
        outputs = {value.name: value for value in frame.output}
        results = [outputs.get(value.name, value) for value in graph.output]
        known = {value.name: value for value in frame.value_info}
        values = [known[value.name] for value in graph.value_info if value.name in known]
        for field, content in ((graph.input, inputs), (graph.output, results)):
            copies = [_copy(value) for value in content]
            del field[:]
            field.extend(copies)
        del graph.value_info[:]
        graph.value_info.extend([*values, *self._reshaped({*known, *outputs})])

    def _reshaped(self, declared: Container[str]) -> list[onnx.ValueInfoProto]:
        """Return the types of what is reshaped to computed sizes, where some of these are always the same.

        ONNX does not infer them then, and takes 0 for an attention's heads of unknown size.
        """
        constants = {tensor.name for tensor in self._file.graph.initializer}
        infos = []
        for node in self._file.graph.node:
            name = node.output[0]
            if node.op_type != "Reshape" or node.input[1] in constants or name in declared:
                continue
            shapes = self._shapes(name)
            varies = [len(set(sizes)) > 1 for sizes in zip(*shapes, strict=True)]
            if shapes and not all(varies):
                info = to_value_info(name, tensor(self._graphs[0].types[self._values[name]], name))
                for axis, dim in enumerate(info.type.tensor_type.shape.dim):
                    if varies[axis]:
                        dim.Clear()
                infos.append(info)
        return infos

    def _drop_unused(self) -> None:
        """Drop initializers that nodes took at one size and do not take now."""
        graph = self._file.graph
        used = {name for node in graph.node for name in (*node.input, *captured_names(node))}
        used |= {value.name for value in graph.output}
        kept = [tensor for tensor in graph.initializer if tensor.name in used]
        if len(kept) < len(graph.initializer):
            names = {tensor.name for tensor in kept}
            for place in reversed(range(len(graph.initializer))):
                if graph.initializer[place].name not in names:
                    del graph.initializer[place]


def short_shape(
    shapes: Sequence[Sequence[int] | Array], operand: Sequence[Sequence[int]]
) -> list[int] | None:
    """Return the shape of a Reshape with 0 for what is copied and -1 for what is left.

    None where more than one dimension would be left.

    Args:
        shapes: of what it gives, at each size.
        operand: of its operand at each; none where these are not known.
    """
    short: list[int] = []
    for axis in range(len(shapes[0])):
        column = [int(shape[axis]) for shape in shapes]
        if len(set(column)) == 1:
            short.append(column[0])
        elif operand and axis < len(operand[0]) and column == [kind[axis] for kind in operand]:
            short.append(0)
        else:
            short.append(-1)
    return short if short.count(-1) <= 1 else None


def _allows_zero(node: onnx.NodeProto) -> bool:
    return any(attribute.name == "allowzero" and attribute.i for attribute in node.attribute)


def _ordered(nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Return nodes after those that they need, and else in their order.

    Raises:
        _CycleError: one needs what it computes itself.
    """
    giver = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    needs = [
        {giver[name] for name in (*node.input, *captured_names(node)) if name in giver}
        for node in nodes
    ]
    done: dict[int, None] = {}
    for start in range(len(nodes)):
        stack, begun = [start], set[int]()
        while stack:
            index = stack[-1]
            waiting = sorted(needs[index] - done.keys(), reverse=True)
            if index in done or not waiting:
                done[stack.pop()] = None
            elif index in begun:
                raise _CycleError(f"{_label(nodes[index])} has a shape that it needs itself")
            else:
                begun.add(index)
                stack += waiting
    return [nodes[index] for index in done]


def _attributes(node: onnx.NodeProto) -> list[bytes]:
    return sorted(attribute.SerializeToString(deterministic=True) for attribute in node.attribute)


def _functions(file: onnx.ModelProto) -> list[bytes]:
    return [function.SerializeToString(deterministic=True) for function in file.functions]


def _label(node: onnx.NodeProto) -> str:
    return f"{node.output[0]!r} ({node.op_type})"


def _all_equal(arrays: Sequence[Array]) -> bool:
    first = arrays[0]
    return all(
        array.dtype == first.dtype
        and array.shape == first.shape
        and np.array_equal(_bytes(array), _bytes(first))
        for array in arrays[1:]
    )


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _copy(value: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(value)
    return copy
