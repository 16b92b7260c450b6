"""onnxruntime's own operators, as which kernels are measured alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relational_tensat.tensor import Array
from relational_tensat.tensor.operators.onnx_form import FunctionBody, Names, OnnxEmitter

#: onnxruntime's own operators, and those of images in blocks.
CONTRIB = "com.microsoft"
_DOMAIN = "com.microsoft.nchwc"
#: From images with channels last to those with channels first, and back.
CHANNELS_FIRST, CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)


class InBlocks:
    """Writes the operators of the same name that take images in blocks.

    Args:
        attrs: further attributes of each.
    """

    def __init__(self, emitter: OnnxEmitter, **attrs: Any) -> None:
        self._emitter = emitter
        self._attrs = attrs

    @property
    def opset(self) -> int:
        """As the emitter's."""
        return self._emitter.opset

    def emit(
        self, op_type: str, inputs: Sequence[str], outputs: int | Sequence[str] = 1, **attrs: Any
    ) -> list[str]:
        """Add such a node."""
        return self._emitter.emit_of(_DOMAIN, op_type, inputs, **attrs, **self._attrs)

    def emit_of(self, domain: str, op_type: str, inputs: Sequence[str], **attrs: Any) -> list[str]:
        """As the emitter."""
        return self._emitter.emit_of(domain, op_type, inputs, **attrs)

    def constant(self, value: Array) -> str:
        """As the emitter."""
        return self._emitter.constant(value)

    def call(
        self, domain: str, name: str, inputs: Names, body: FunctionBody, metadata: Mapping[str, str]
    ) -> list[str]:
        """As the emitter."""
        return self._emitter.call(domain, name, inputs, body, metadata)


class InPlaceOf(InBlocks):
    """Writes one of onnxruntime's own operators in place of an ONNX operator, with its attributes.

    Args:
        inputs: of what is written.
        attrs: further ones of it.
    """

    def __init__(self, emitter: OnnxEmitter, op_type: str, inputs: Names, **attrs: Any) -> None:
        super().__init__(emitter, **attrs)
        self._op_type = op_type
        self._inputs = inputs

    def emit(
        self, op_type: str, inputs: Sequence[str], outputs: int | Sequence[str] = 1, **attrs: Any
    ) -> list[str]:
        """Add the other node."""
        own = {**attrs, **self._attrs}
        return self._emitter.emit_of(CONTRIB, self._op_type, self._inputs, **own)
