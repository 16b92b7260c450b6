"""onnxruntime's own Gelu replaced by a kernel: of any size, between convolutions, too.

A custom op of the default operator set wins over the runtime's. onnxruntime goes on treating the nodes as
Gelu. So those between convolutions stay in its blocked layout, which a custom op of another name would end.
The kernel computes so many elements at a time; the rest goes through memory of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from relational_tensat.base.errors import InputError, first_line
from relational_tensat.base.folders import utf8_name
from relational_tensat.custom_ops.build import library_of
from relational_tensat.custom_ops.function_check import TOLERANCE
from relational_tensat.custom_ops.library import library_files
from relational_tensat.formats.onnx_names import all_nodes
from relational_tensat.mugraph.graph.dims import count
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernels.emit_c import emit_c
from relational_tensat.tensor import Array
from relational_tensat.verify.comparison import relative_error
from relational_tensat.verify.sessions import runtime_errors

#: As ``custom_op.h`` has it: elements that a kernel computes at a time.
BLOCK = 512
#: Operators that can be replaced, each with the first version of the operator set that has it.
OVERRIDES: Mapping[str, int] = {"Gelu": 20}
_SEED = 5_000_000


def checked_override(name: str, graph: MuGraph) -> MuGraph:
    """Return the kernel of an override: of a block of elements, one operand, one result.

    Raises:
        InputError: the kernel is no override.
    """
    dims = kernel_tensors(graph)
    tensors = [*graph.inputs, *graph.outputs]
    if name not in OVERRIDES:
        raise InputError(f"{name!r}: no kernel replaces it, expected {', '.join(OVERRIDES)}")
    if len(graph.inputs) != 1 or len(graph.outputs) != 1 or graph.conditions:
        raise InputError(f"{name}: a kernel of other than one operand and one result")
    if len(graph.kernels) != 1 or len(graph.steps) != 1:
        raise InputError(f"{name}: other than one kernel")
    if any(count(dims[each]) != BLOCK for each in tensors):
        raise InputError(f"{name}: a kernel of other than {BLOCK} elements")
    return graph


def can_override(name: str, model: onnx.ModelProto) -> bool:
    """Whether all nodes of that name in a model are ones that a kernel in float32 may replace.

    A node of unknown types, or one that approximates, cannot be overridden.
    """
    version = max((each.version for each in model.opset_import if not each.domain), default=0)
    bodies = [model.graph.node, *(function.node for function in model.functions)]
    nodes = [n for body in bodies for n in all_nodes(body) if n.op_type == name and not n.domain]
    inferred = onnx.shape_inference.infer_shapes(model).graph
    kinds = {
        value.name: value.type.tensor_type.elem_type
        for value in (*inferred.value_info, *inferred.input, *inferred.output)
    }
    kinds |= {tensor.name: tensor.data_type for tensor in inferred.initializer}
    here = [node for node in model.graph.node if node.op_type == name and not node.domain]
    return (
        version >= OVERRIDES[name]
        and len(here) == len(nodes) > 0
        and all(kinds.get(node.input[0]) == onnx.TensorProto.FLOAT for node in here)
        and not any(node.attribute and node.attribute[0].s != b"none" for node in here)
    )


def override_library(overrides: Mapping[str, MuGraph]) -> Path:
    """Return the library of kernels by the operators that they replace, compiled and compared with these.

    Raises:
        MissingDependencyError: there is no C compiler.
        InputError: a kernel cannot override, does not compile, or computes something else.
    """
    return library_of(override_sources(overrides), b"", partial(_compare, overrides=overrides))


def override_sources(overrides: Mapping[str, MuGraph]) -> dict[str, str]:
    """Return the files of the library, by name; none for none."""
    files: dict[str, str] = {}
    functions, rows = [], []
    for number, (name, graph) in enumerate(overrides.items()):
        kernel = replace(checked_override(name, graph).kernels[0], name=f"of_override_{number}")
        emitted = emit_c(kernel, {each: graph.inputs[each] for each in kernel.operands})
        files[f"{emitted.name}.c"] = emitted.source
        functions.append(f"extern void {emitted.name}(const float *, float *);")
        rows.append(f'    OVERRIDE("{name}", {emitted.name}),')
    return {**files, **library_files(functions, rows, domain="")} if files else {}


def _compare(library: Path, overrides: Mapping[str, MuGraph]) -> None:
    """Compare each with onnxruntime's own, at sizes around those of blocks, in float64's tolerance."""
    random = np.random.default_rng(_SEED)
    try:
        for name in overrides:
            own, replaced = (_session(name, each) for each in (None, library))
            for size in (1, 5, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 77):
                x: Array = (4 * random.standard_normal((1, size))).astype(np.float32)
                expected, found = (s.run(None, {"x": x})[0] for s in (own, replaced))
                if relative_error(expected.astype(np.float64), found) > TOLERANCE:
                    raise InputError(f"{name}: the kernel computes something else")
    except runtime_errors() as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"onnxruntime does not run kernels: {first_line(error)}") from error


def _session(name: str, library: Path | None) -> onnxruntime.InferenceSession:
    value = onnx.helper.make_tensor_value_info
    kinds = (value(each, onnx.TensorProto.FLOAT, ["rows", "size"]) for each in ("x", "y"))
    x, y = kinds
    graph = onnx.helper.make_graph([onnx.helper.make_node(name, ["x"], ["y"])], "one", [x], [y])
    imports = [onnx.helper.make_opsetid("", OVERRIDES[name])]
    model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if library is not None:
        options.register_custom_ops_library(utf8_name(library))
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
