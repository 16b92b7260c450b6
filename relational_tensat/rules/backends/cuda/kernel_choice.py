"""The kernels by which the executor runs an application of an operator; its cost is theirs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from relational_tensat.base.errors import InputError, ShapeError
from relational_tensat.cost import Configuration
from relational_tensat.cost.cuda.single import graph_of
from relational_tensat.cost.key import configuration_of
from relational_tensat.gpu import calls
from relational_tensat.gpu.library_calls import (
    blas_product,
    convolution_epilogue,
    cudnn_fuses,
    even_padding,
)
from relational_tensat.gpu.plan import plan_graph
from relational_tensat.rules.backends.cuda.cuda_kernels import (
    CudaElementwise,
    CudaProduct,
    CudnnConvAdd,
    ProductAdd,
    activation_operator,
)
from relational_tensat.tensor import Attrs, Graph, Node, TensorType, ValueType, build_graph
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.traits import NO_ACTIVATION

#: Operators whose libraries may leave a bias or an activation, with the number of the bias.
_BIASES = {
    "matmul": 2,
    "conv": 2,
    CudaProduct.name: 2,
    ProductAdd.name: 3,
    CudnnConvAdd.name: 3,
}
#: Operators that only move elements: where these lie in one piece, nothing has to run.
_MOVES = frozenset({"cast", "concat", "expand", "slice", "split", "transpose"})


def kernels_of(
    configuration: Configuration, *, tells_computed: bool = False
) -> list[Configuration]:
    """Return the kernels that run.

    Work that a library does not do on its way out is a launch behind it; padding that cuDNN does not have
    is written out by one before it. Where elements stay where they are, it is a view, as ``identity`` is.
    An operator without a kernel of the executor counts as one, as it would be.

    Args:
        tells_computed: whether costs know what operands are computed; these have the same kernels.
    """
    return list(_kernels_of(configuration))


def with_products(graph: Graph, *, has_fixed_shapes: bool) -> Graph:
    """Return a graph with one name for one kernel: products that cuBLASLt does alone, as ``Product``."""
    nodes = [
        replace(node, op=CudaProduct.name) if _is_product(graph, node) else node
        for node in graph.nodes
    ]
    return build_graph(graph.name, graph.inputs, graph.weights, nodes, graph.outputs)


def _is_product(graph: Graph, node: Node) -> bool:
    if node.op != "matmul":
        return False
    try:
        CudaProduct().check(tuple(graph.types[name] for name in node.inputs), node.attrs)
    except ShapeError:
        return False
    return True


@cache
def _kernels_of(configuration: Configuration) -> tuple[Configuration, ...]:
    if configuration.op not in _MOVES and configuration.op not in _BIASES:
        return (configuration,)
    try:
        steps = plan_graph(graph_of(configuration)).steps
    except InputError:
        return (configuration,)
    if configuration.op in _MOVES:
        x = configuration.inputs[0]
        is_view = not steps and isinstance(x, TensorType)
        return (_kernel("identity", (x,), {}) if is_view else configuration,)
    (step,) = steps
    call, kernels = step.call, [configuration]
    if isinstance(call, calls.Convolution) and not even_padding(call.windows):
        kernels = _with_padded_operand(configuration, call.windows)
    *before, kernel = kernels
    return (*before, *(_apart(kernel) if _leaves_epilogue(call) else (kernel,)))


def _leaves_epilogue(call: calls.Call) -> bool:
    if isinstance(call, calls.Convolution):
        return not cudnn_fuses(call) and convolution_epilogue(call) is not None
    product = blas_product(call) if isinstance(call, calls.ProductCall) else None
    return product is not None and product.rest is not None


def _with_padded_operand(
    configuration: Configuration, windows: calls.Windows
) -> list[Configuration]:
    """Return the launch that pads an image, and the convolution of what it writes."""
    x, *others = configuration.inputs
    assert isinstance(x, TensorType)
    rank = x.rank - 2
    begins, ends = ((0, 0, *borders[3 - rank :]) for borders in (windows.begins, windows.ends))
    pad = _kernel("pad", (x,), {"pads": (*begins, *ends)})
    attrs = {**dict(configuration.attrs), "pad": "valid"}
    return [pad, _kernel(configuration.op, (pad.output, *others), attrs)]


def _apart(configuration: Configuration) -> tuple[Configuration, ...]:
    """Return a kernel without bias and activation, and the launch that does these."""
    op, attrs, output = configuration.op, dict(configuration.attrs), configuration.output
    number, act = _BIASES[op], attrs["act"]
    bias = configuration.inputs[number:]
    bare = _kernel(op, configuration.inputs[:number], {**attrs, "act": NO_ACTIVATION})
    name, own = activation_operator(str(act))
    if not bias:
        return bare, _kernel(name, (output,), own)
    if act == NO_ACTIVATION:
        return bare, _kernel("add", (output, *bias), {})
    return bare, _kernel(CudaElementwise.name, (output, *bias), {"op": "add", "act": act})


def _kernel(op: str, inputs: tuple[ValueType, ...], attrs: Attrs) -> Configuration:
    operator = get_operator(op)
    output = operator.infer(inputs, operator.canonical(inputs, attrs))
    return configuration_of(op, inputs, output, attrs)
