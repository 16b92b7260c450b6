"""The emitter that operators write ONNX with (``tensor.operators.onnx_form.OnnxEmitter``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
import onnx

from relational_tensat.formats.arrays import uniform_element
from relational_tensat.formats.onnx_names import FreshNames
from relational_tensat.formats.onnx_origin import FileTensor
from relational_tensat.formats.onnx_types import dtype_code, stored, to_tensor
from relational_tensat.formats.onnx_wire import LARGE_BYTES, PLACEHOLDER
from relational_tensat.tensor.operators.onnx_form import FunctionBody
from relational_tensat.tensor.types import Array

#: The first version of the default operator set that has ConstantOfShape.
_UNIFORM_SINCE = 9
#: Element types that ConstantOfShape gives in every version of the default operator set written.
_UNIFORM_DTYPES = {
    "float64", "float32", "float16", "int64", "int32", "int16", "int8",
    "uint64", "uint32", "uint16", "uint8", "bool",
}  # fmt: skip


#: Up to so many bytes of equal elements are written out: a node less at inference is worth them.
_UNIFORM_BYTES = 512
#: Where a tensor has its elements.
_DATA_FIELDS = {
    "raw_data", "float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data",
}  # fmt: skip


class Emitter:
    """Collects the nodes and initializers of an ONNX graph.

    Args:
        opset: the version of the default operator set that is written.
        fresh: gives names that are not in use.
        there: local functions of the file that is written to.
    """

    def __init__(
        self, opset: int, fresh: FreshNames, there: Iterable[onnx.FunctionProto] = ()
    ) -> None:
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.sparse_initializers: list[onnx.SparseTensorProto] = []
        #: The tensors that stand in the file for the placeholders of large initializers, by name.
        self.large_weights: dict[str, Array] = {}
        #: Local functions that nodes call, by domain and name.
        self.functions: dict[tuple[str, str], onnx.FunctionProto] = {}
        self._there = {(function.domain, function.name): function for function in there}
        #: Other operator sets than those of the file and of functions.
        self.domains: set[str] = set()
        self._fresh = fresh
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._start = 0
        self._base = ""

    def emit(
        self, op_type: str, inputs: Sequence[str], outputs: int | Sequence[str] = 1, **attrs: Any
    ) -> list[str]:
        """Add an ONNX node; return the names of its outputs (fresh ones for a number)."""
        if isinstance(outputs, int):
            base = f"{self._base}/{op_type}" if self._base else op_type
            outputs = [self._fresh.new(base) for _ in range(outputs)]
        node = onnx.helper.make_node(op_type, list(inputs), list(outputs))
        node.attribute.extend(_attribute(key, value) for key, value in attrs.items())
        self.nodes.append(node)
        return list(outputs)

    def emit_of(self, domain: str, op_type: str, inputs: Sequence[str], **attrs: Any) -> list[str]:
        """Add a node of another operator set; return the name of its output."""
        self.domains.add(domain)
        outputs = self.emit(op_type, inputs, **attrs)
        self.nodes[-1].domain = domain
        return outputs

    def constant(self, value: Array) -> str:
        """Add (or find) an initializer of this value; return its name."""
        value = np.asarray(value)
        key = (str(value.dtype), value.shape, value.tobytes())
        if key not in self._constants:
            self._constants[key] = self._fresh.new("constant")
            tensor = to_tensor(self._constants[key], value, str(value.dtype))
            self.initializers.append(tensor)
        return self._constants[key]

    def call(
        self,
        domain: str,
        name: str,
        inputs: Sequence[str],
        body: FunctionBody,
        metadata: Mapping[str, str],
    ) -> list[str]:
        """Add a call of a local function, and the function if it is new; return its results' names.

        If another function has that name, it gets a number behind it. A kernel may stand for nodes that
        leave its results in one shape here, and in another there, and the file may have one of its own.
        """
        for number in count(1):
            called = name if number == 1 else f"{name}_{number}"
            function = self._function(domain, called, len(inputs), body, metadata)
            known = self._there.get((domain, called), function)
            if known == function == self.functions.setdefault((domain, called), function):
                break
        outputs = self.emit(called, inputs, outputs=len(function.output))
        self.nodes[-1].domain = domain
        return outputs

    def _function(
        self, domain: str, name: str, arity: int, body: FunctionBody, metadata: Mapping[str, str]
    ) -> onnx.FunctionProto:
        """Return a function; constants are nodes in it, which has no initializers."""
        operands = [f"operand_{number}" for number in range(arity)]
        inner = Emitter(self.opset, FreshNames(operands))
        results = body(inner, operands)
        name_slices(inner.nodes)
        constants = [
            onnx.helper.make_node("Constant", [], [tensor.name], value=tensor)
            for tensor in inner.initializers
        ]
        function = onnx.helper.make_function(
            domain, name, operands, results, [*constants, *inner.nodes],
            [onnx.helper.make_opsetid("", self.opset)],
        )  # fmt: skip
        for key, value in metadata.items():
            function.metadata_props.add(key=key, value=value)
        return function

    def weight(self, name: str, value: Array, dtype: str, *, may_be_node: bool = True) -> None:
        """Add a constant of this name: an initializer, or ConstantOfShape when it is large and uniform.

        Args:
            may_be_node: whether a node may stand for an initializer.
        """
        element = uniform_element(value) if may_be_node and value.nbytes > _UNIFORM_BYTES else None
        if element is None or dtype not in _UNIFORM_DTYPES or self.opset < _UNIFORM_SINCE:
            tensor = onnx.TensorProto(name=name, data_type=dtype_code(dtype), dims=value.shape)
            self.tensor(name, tensor, value, dtype)
            return
        shape = self.constant(np.array(value.shape, np.int64))
        tensor = to_tensor("value", element.reshape(1), dtype)
        self.emit("ConstantOfShape", [shape], [name], value=tensor)

    def tensor(self, name: str, tensor: onnx.TensorProto, value: Array, dtype: str) -> None:
        """Add a constant of this name as a file has it; of one without data, ``value`` is that."""
        copy = onnx.TensorProto()
        copy.CopyFrom(tensor)
        copy.name = name
        if not any(descriptor.name in _DATA_FIELDS for descriptor, _ in copy.ListFields()):
            elements = stored(value, dtype)
            is_large = elements.nbytes >= LARGE_BYTES
            copy.raw_data = PLACEHOLDER if is_large else elements.tobytes()
            if is_large:
                self.large_weights[name] = elements
        self.initializers.append(copy)

    def file_tensor(self, name: str, tensor: FileTensor) -> None:
        """Add a constant of this name as a file has it."""
        copy = type(tensor)()
        copy.CopyFrom(tensor)
        if isinstance(copy, onnx.SparseTensorProto):
            copy.values.name = name
            self.sparse_initializers.append(copy)
        else:
            copy.name = name
            self.initializers.append(copy)

    def begin(self, base: str) -> None:
        """Start an operator: fresh names will begin with ``base``, the name of its first result."""
        self._start = len(self.nodes)
        self._base = base

    def finish(self, results: Sequence[str], outputs: Sequence[str], name: str) -> None:
        """End an operator: give its results the names they should have.

        Args:
            results: the names that the operator returned, one for each of ``outputs``.
            name: the node's own name, for the last ONNX node.
        """
        nodes = self.nodes[self._start :]
        node_outputs = {output for node in nodes for output in node.output}
        names: dict[str, str] = {}
        for result, output in zip(results, outputs, strict=True):
            if result in node_outputs and result not in names:
                names[result] = output
            elif result != output:  # an operand handed through, or one result under two names
                self.emit("Identity", [result], [output])
        for node in self.nodes[self._start :]:
            node.input[:] = [names.get(value, value) for value in node.input]
            node.output[:] = [names.get(value, value) for value in node.output]
        if nodes and name:
            nodes[-1].name = name
        self._base = ""


def name_slices(nodes: Iterable[onnx.NodeProto]) -> None:
    """Give nodes of slices names if they have none.

    onnxruntime before 1.22 makes one Split of several, with the name of one of them and an ending. Two such
    Splits of nodes without names have the same name, and it refuses its own model.
    """
    for node in nodes:
        if node.op_type in ("Gather", "Slice") and not node.name:
            node.name = node.output[0]


def _attribute(name: str, value: Any) -> onnx.AttributeProto:
    if isinstance(value, list | tuple) and not value:  # make_attribute cannot know of what
        return onnx.AttributeProto(name=name, type=onnx.AttributeProto.INTS)
    if isinstance(value, np.ndarray):
        value = to_tensor(name, value, str(value.dtype))
    return onnx.helper.make_attribute(name, value)
