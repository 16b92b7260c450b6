"""Operators that are several ONNX nodes: what onnxruntime runs as it is written costs what its nodes cost.

A convolution with a fused activation is written as Conv and Relu. With graph optimizations off both run, so
its time is the sum of theirs, and to measure it by itself would only add a second opinion, with its own
error, on the same kernels: an optimizer picks the cheaper of two opinions and believes to have won.
"""

from __future__ import annotations

from relational_tensat.cost.device import Configuration, Sample
from relational_tensat.cost.key import configuration_of
from relational_tensat.tensor import TensorType
from relational_tensat.tensor.operators.matmul import is_gemm
from relational_tensat.tensor.operators.shapes import operands

_NO_ACTIVATION = "none"


def nodes_of(configuration: Configuration) -> list[Configuration]:
    """Return the configurations of the nodes that one is written as; itself where it is one node."""
    attrs = dict(configuration.attrs)
    inputs, output = configuration.inputs, configuration.output
    after: list[Configuration] = []
    activation = str(attrs.get("act", _NO_ACTIVATION))
    if activation != _NO_ACTIVATION:
        after.append(configuration_of(activation, (output,), output, {}))
        attrs["act"] = _NO_ACTIVATION
    if configuration.op == "matmul" and len(inputs) == 3 and not is_gemm(_tensors(configuration)):
        after.insert(0, configuration_of("add", (output, inputs[2]), output, {}))
        inputs = inputs[:2]
    return [configuration_of(configuration.op, inputs, output, attrs), *after]


def total(samples: list[Sample]) -> Sample:
    """Return the sum of times; as many samples as the fewest."""
    return Sample(
        median_us=sum(each.median_us for each in samples),
        p10_us=sum(each.p10_us for each in samples),
        p90_us=sum(each.p90_us for each in samples),
        samples=min(each.samples for each in samples),
    )


def _tensors(configuration: Configuration) -> tuple[TensorType, ...]:
    return operands(configuration.op, configuration.inputs)
