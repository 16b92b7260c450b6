"""Operators that are several ONNX nodes: what onnxruntime runs as it is written costs what its nodes cost.

A convolution with a fused activation is written as Conv and Relu. With graph optimizations off both run, so
its time is the sum of theirs, and to measure it by itself would only add a second opinion, with its own
error, on the same kernels: an optimizer picks the cheaper of two opinions and believes to have won.
"""

from __future__ import annotations

from relational_tensat.cost.device import Configuration, TimingSample
from relational_tensat.cost.key import configuration_of
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.traits import NO_ACTIVATION


def nodes_of(configuration: Configuration) -> list[Configuration]:
    """Return the configurations of the nodes that one is written as; itself where it is one node."""
    attrs = dict(configuration.attrs)
    inputs, output, computed = configuration.inputs, configuration.output, configuration.computed
    after: list[Configuration] = []
    activation = str(attrs.get("act", NO_ACTIVATION))
    if activation != NO_ACTIVATION:
        after.append(configuration_of(activation, (output,), output, {}))
        attrs["act"] = NO_ACTIVATION
    if get_operator(configuration.op).adds_bias_apart(inputs):
        after.insert(0, configuration_of("add", (output, inputs[2]), output, {}))
        inputs = inputs[:2]
    return [configuration_of(configuration.op, inputs, output, attrs, computed), *after]


def total(samples: list[TimingSample]) -> TimingSample:
    """Return the sum of times; as many samples as the fewest."""
    return TimingSample(
        median_us=sum(sample.median_us for sample in samples),
        p10_us=sum(sample.p10_us for sample in samples),
        p90_us=sum(sample.p90_us for sample in samples),
        samples=min(sample.samples for sample in samples),
    )
