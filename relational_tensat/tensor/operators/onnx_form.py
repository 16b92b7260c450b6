"""The ONNX operators that an operator reads and writes, and what it reads and writes them with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Protocol, TypeAlias

from relational_tensat.base.records import record
from relational_tensat.tensor.types import Array, Attrs, TensorType, ValueType

#: The names of operands' tensors in an ONNX graph.
Names: TypeAlias = Sequence[str]


#: Writes a local function, given what to write with and the names of its operands; returns its results.
FunctionBody: TypeAlias = "Callable[[OnnxEmitter, Names], list[str]]"


class OnnxNode(Protocol):
    """An ONNX node as ``Operator.read_onnx`` sees it: static facts only, no protobuf."""

    @property
    def op_type(self) -> str:
        """The ONNX operator's name."""

    @property
    def domain(self) -> str:
        """The operator set that it is from; "" for the default one."""

    @property
    def opset(self) -> int:
        """The version of the default operator set."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs, "" where an optional one is left out."""

    @property
    def input_types(self) -> tuple[TensorType | None, ...]:
        """One per input; None where none is known."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs, "" where unused."""

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Numbers, strings, tuples of these; tensors as NumPy arrays."""

    def constant(self, index: int) -> Array | None:
        """Return the value of an input that is known before inference, None if it is not."""


@record
class Mapped:
    """What an ONNX node becomes: an operator, its operands, its attributes.

    An operand is the name of one of the ONNX node's inputs, or another ``Mapped``: a node of one
    output that is made for it first (``Gemm`` with ``transB`` is a matmul of a transpose).
    """

    op: str
    inputs: tuple[str | Mapped, ...]
    attrs: Attrs = field(default_factory=dict)


class OnnxEmitter(Protocol):
    """What ``Operator.to_onnx`` writes with."""

    @property
    def opset(self) -> int:
        """The version of the default operator set that is written."""

    def emit(
        self, op_type: str, inputs: Sequence[str], outputs: int | Sequence[str] = 1, **attrs: Any
    ) -> list[str]:
        """Add an ONNX node; return the names of its outputs (fresh ones for a number)."""

    def emit_of(self, domain: str, op_type: str, inputs: Sequence[str], **attrs: Any) -> list[str]:
        """Add a node of another operator set; return the name of its output."""

    def constant(self, value: Array) -> str:
        """Add (or find) an initializer of this value; return its name."""

    def call(
        self, domain: str, name: str, inputs: Names, body: FunctionBody, metadata: Mapping[str, str]
    ) -> list[str]:
        """Add a call of a local function, and the function if it is new; return its results' names.

        Args:
            body: writes the function with an emitter of its own, given the names of its operands.
            metadata: of the function.
        """


class OnnxForm:
    """How an operator is read from ONNX and written to it; part of ``Operator``."""

    name: ClassVar[str]
    #: The ONNX operators (default domain) that ``read_onnx`` reads.
    onnx: ClassVar[tuple[str, ...]] = ()
    #: The first version of ONNX's operators in which ``to_onnx`` writes this operator as one node,
    #: where it takes many before.
    onnx_since: ClassVar[int] = 1

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        """Translate an ONNX node of ``self.onnx``, of any version; None where it stays opaque.

        ``registry.map_onnx`` then checks operands and attributes.

        Raises:
            ShapeError: the node cannot be expressed (e.g. a shape is known at run time only).
        """
        return None

    def to_onnx(
        self,
        inputs: Names,
        types: tuple[ValueType, ...],
        output: ValueType,
        attrs: Attrs,
        emitter: OnnxEmitter,
    ) -> list[str]:
        """Write the operator as ONNX nodes; return the names of its results (one per part).

        Args:
            inputs: the names of the operands' tensors; a tuple operand (a ``noop``) takes as many
                names as it has parts, one after the other.
            types: one per operand.
            attrs: normalized.

        Valid for ``emitter.opset`` from 13 on. Without attributes, one node of the first of ``self.onnx``
        unless an operator writes itself otherwise.
        """
        if not self.onnx or attrs:
            raise NotImplementedError(f"{self.name} has no ONNX form")
        return emitter.emit(self.onnx[0], list(inputs))

    def adds_bias_apart(self, types: tuple[ValueType, ...]) -> bool:
        """Whether ``to_onnx`` adds the last of three operands by an ONNX node of its own."""
        return False
