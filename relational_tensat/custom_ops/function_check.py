"""A library is compared with the functions that its ops stand for: as the file says them, in float64.

An op with loops is compared at several sizes of these: 1, primes of which none is another's, and enough
turns for several threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from relational_tensat.base.errors import InputError, first_line
from relational_tensat.base.folders import temporary_folder, utf8_name
from relational_tensat.custom_ops.build import library_of
from relational_tensat.custom_ops.library import ONNX_TYPES, KernelOp, KernelUse, sources_of
from relational_tensat.formats import load_model
from relational_tensat.mugraph.fusion.integer_parts import INTEGERS
from relational_tensat.rules.backends.fused_chain import DOMAIN
from relational_tensat.tensor import Array, Node
from relational_tensat.tensor.floats import integer_range
from relational_tensat.tensor.operators import get_operator
from relational_tensat.verify.comparison import relative_error
from relational_tensat.verify.evaluate import evaluate_graph
from relational_tensat.verify.sessions import runtime_errors

#: Of float32 from float64, relative to the largest element.
TOLERANCE = 1e-4
_SEED = 4_000_000


def functions_of(model: Path) -> dict[str, onnx.FunctionProto]:
    """Return a file's local functions that kernels may stand for, by name.

    Raises:
        InputError: it cannot be read.
    """
    try:
        read = onnx.load(model, load_external_data=False)
    except Exception as error:  # of protobuf's, which has several
        raise InputError(f"{model}: no ONNX: {first_line(error)}") from error
    return {each.name: each for each in read.functions if each.domain == DOMAIN}


def compared_library(ops: Sequence[KernelOp], functions: Mapping[str, onnx.FunctionProto]) -> Path:
    """Return the library of some ops, compiled and compared with their functions; see ``library_of``."""
    own = b"".join(functions[op.name].SerializeToString(deterministic=True) for op in ops)
    compare = partial(compare_with_functions, ops=ops, functions=functions)
    return library_of(sources_of(ops), own, compare)


def compare_with_functions(
    library: Path, ops: Sequence[KernelOp], functions: Mapping[str, onnx.FunctionProto]
) -> None:
    """Run each op in onnxruntime, in each of its uses, and its function in float64, on random operands.

    Raises:
        InputError: one computes something else, or onnxruntime does not run it.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        options.register_custom_ops_library(utf8_name(library))
        for op in ops:
            for use in uses_to_compare(op):
                _compare(op, use, functions[op.name], options)
    except runtime_errors() as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"onnxruntime does not run kernels: {first_line(error)}") from error


#: Of loops; and how many turns with work for several threads there are.
_PRIMES, _MANY = (2, 3, 5, 7, 11, 13, 17, 19, 23), 257
#: Elements of a result beyond which no sizes are compared but the smallest.
_MOST_ELEMENTS = 1 << 22


def uses_to_compare(op: KernelOp) -> list[KernelUse]:
    """Return the shapes that an op is compared at."""
    if not op.loops:
        return list(op.uses)
    number, (use,) = len(op.loops), op.uses
    tried = [(1,) * number, *(_PRIMES[n:][:number] for n in (0, 1)), _PRIMES[number - 1 :: -1]]
    tried += [(_MANY, *_PRIMES[1:number]), (*_PRIMES[1:number], _MANY)]
    sizes = [tuple(own or n for own, n in zip(op.loops, each, strict=True)) for each in tried]
    uses = dict.fromkeys(map(use.at, sizes))
    most = [max(map(math.prod, (*each.operands, *each.results))) for each in uses]
    return [
        each for n, each in enumerate(uses) if n == 0 or most[n] <= max(_MOST_ELEMENTS, 2 * most[0])
    ]


def _compare(
    op: KernelOp,
    use: KernelUse,
    function: onnx.FunctionProto,
    options: onnxruntime.SessionOptions,
) -> None:
    model = model_of_call(op, use, function)
    with temporary_folder() as folder:
        onnx.save(model, folder / "call.onnx")
        graph = load_model(folder / "call.onnx")
    weights = {name: np.asarray(weight.data) for name, weight in graph.weights.items()}
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = graph.outputs
    rounding = {node.outputs[0]: node for node in graph.nodes if node.op == "quantize"}
    real = [rounding[name].inputs[0] if name in rounding else name for name in graph.outputs]
    graph = replace(graph, outputs=tuple(real))
    for operands in drawn(op, use):
        found = session.run(None, operands)
        expected = evaluate_graph(graph, operands, weights)
        for name, number, value, shape in zip(names, real, found, use.results, strict=True):
            is_same = value.shape == shape
            if is_same and name in rounding:
                is_same = _is_nearest(rounding[name], operands, expected[number], value)
            elif is_same:
                is_same = relative_error(expected[number], value) <= TOLERANCE
            if not is_same:
                raise InputError(f"{op.name}: the kernel computes something else than its function")


def _is_nearest(node: Node, operands: Mapping[str, Array], real: Array, found: Array) -> bool:
    """Whether integers are what numbers within tolerance of these are rounded to.

    A tenth of a step is the most: large numbers are no excuse for small ones. No number has no integer.
    """
    scale, zero = (operands[name] for name in node.inputs[1:])
    finite = np.abs(real[np.isfinite(real)])
    if not finite.size or found.dtype != node.attrs["dtype"]:
        return False
    error = min(TOLERANCE * finite.max(), scale.item() / 10)
    least, most = (
        get_operator(node.op).evaluate((real + sign * error, scale, zero), node.attrs)
        for sign in (-1, 1)
    )
    return bool((((least <= found) & (found <= most)) | np.isnan(real)).all())


def model_of_call(
    op: KernelOp, use: KernelUse, function: onnx.FunctionProto | None = None
) -> onnx.ModelProto:
    """Return a model of one call, with shapes of one of its uses.

    Args:
        function: the function that is called where the kernel is not registered.
    """
    inputs = [
        onnx.helper.make_tensor_value_info(f"given_{place}", ONNX_TYPES[op.tensors[name]], shape)
        for place, (name, shape) in enumerate(zip(op.operands, use.operands, strict=True))
    ]
    outputs = [
        onnx.helper.make_tensor_value_info(f"found_{place}", ONNX_TYPES[op.tensors[name]], shape)
        for place, (name, shape) in enumerate(zip(op.graph.outputs, use.results, strict=True))
    ]
    node = onnx.helper.make_node(
        op.name, [each.name for each in inputs], [each.name for each in outputs], domain=DOMAIN
    )
    imports = [onnx.helper.make_opsetid(DOMAIN, 1), *(function.opset_import if function else ())]
    graph = onnx.helper.make_graph([node], "call", inputs, outputs)
    return onnx.helper.make_model(
        graph,
        opset_imports=imports,
        functions=[function] if function else [],
        ir_version=_IR_VERSION,
    )


#: The first that has local functions with metadata.
_IR_VERSION = 10


def drawn(op: KernelOp, use: KernelUse) -> Iterator[dict[str, Array]]:
    """Yield operands of any sign, then those that roots and logarithms can be had of.

    Integers are all that there are, as often as there is room; scales are such that results vary.
    """
    for kind in ("normal", "positive"):
        random, operands = np.random.default_rng(_SEED), {}
        for place, (name, shape) in enumerate(zip(op.operands, use.operands, strict=True)):
            if (dtype := op.tensors[name]) in INTEGERS:
                least, most = integer_range(dtype)
                every = np.arange(least, most + 1, dtype=dtype)
                several = np.resize(random.permutation(every), max(math.prod(shape), every.size))
                value: Array = several[: math.prod(shape)].reshape(shape)
            elif dtype == "bool":
                value = random.random(shape) < 0.5
            elif name not in op.graph.inputs:
                value = np.asarray(random.uniform(0.01, 0.05, shape), np.float32)
            elif kind == "positive":
                value = random.uniform(0.5, 1.5, shape).astype(np.float32)
            else:
                value = random.standard_normal(shape).astype(np.float32)
            operands[f"given_{place}"] = value
        yield operands
