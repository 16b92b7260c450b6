"""The C of a library: each kernel as a function, and a custom op of onnxruntime that calls it.

``custom_op.h`` has what all ops share, and every fact about onnxruntime's ABI.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import count
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernels.emit_c import CKernel, emit_c
from relational_tensat.rules.backends.fused_chain import DOMAIN

Shape = tuple[int, ...]

#: As ``custom_op.h`` has them.
MOST_DIMS, MOST_TENSORS = 16, 64
#: Of a tensor: 1 GiB. Each op is run once before its library is kept.
MOST_ELEMENTS = 1 << 28
#: What the function of an op may be called: it stands in C as a text, and in names of files.
_NAME = re.compile(r"fused_[0-9A-Za-z_]{1,80}")
#: ONNX's numbers of element types.
_FLOAT, _BOOL = 1, 9


@dataclass(frozen=True, slots=True)
class KernelUse:
    """The shapes of a call.

    Attributes:
        operands, results: as the model has them; the elements lie as those of the μGraph's tensors.
    """

    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class KernelOp:
    """A custom op: a kernel under the name of a local function.

    Attributes:
        name: of the function, for example ``fused_k0123456789abcdef``.
        graph: the kernel, of float32.
        uses: the shapes of its calls, at least one.
    """

    name: str
    graph: MuGraph
    uses: tuple[KernelUse, ...]


def checked_op(op: KernelOp) -> KernelOp:
    """Return an op whose C reads and writes what onnxruntime gives it, and no more.

    Raises:
        InputError: it has another name, a step that is no kernel, or shapes of other sizes.
    """
    if not _NAME.fullmatch(op.name):
        raise InputError(f"{op.name!r}: no name of a kernel, expected fused_ and letters or digits")
    graph, dims = op.graph, kernel_tensors(op.graph)
    if not graph.kernels or len(graph.kernels) != len(graph.steps):
        raise InputError(f"{op.name}: has steps that are no kernels")
    tensors = [*graph.inputs, *graph.outputs]
    if any(count(dims[name]) > MOST_ELEMENTS for name in dims):
        raise InputError(f"{op.name}: a tensor of more than {MOST_ELEMENTS:,} elements")
    if not op.uses or len(tensors) > MOST_TENSORS:
        raise InputError(f"{op.name}: {len(tensors)} tensors in {len(op.uses)} uses")
    for use in op.uses:
        shapes = [*use.operands, *use.results]
        counts = (len(use.operands), len(use.results))
        if counts != (len(graph.inputs), len(graph.outputs)):
            raise InputError(f"{op.name}: a use of {counts[0]} operands and {counts[1]} results")
        for name, shape in zip(tensors, shapes, strict=True):
            if len(shape) > MOST_DIMS or min(shape, default=1) < 1:
                raise InputError(f"{op.name}: a shape of {len(shape)} dims, {list(shape)}")
            if math.prod(shape) != count(dims[name]):
                own = count(dims[name])
                raise InputError(f"{op.name}: {list(shape)} has other than {own:,} elements")
    return op


def sources_of(ops: Sequence[KernelOp]) -> dict[str, str]:
    """Return the files of a library, by name: one for each kernel, and ``library.c``; none for no ops.

    Raises:
        InputError: an op is not right, or C cannot say a kernel: those with products are left to libraries.
    """
    files: dict[str, str] = {}
    functions, tables, rows = [], [], []
    for number, op in enumerate(map(checked_op, ops)):
        kernels = _kernels(op.graph, str(number))
        for step in op.graph.kernels:
            each = kernels[step.name]
            files[f"{each.name}.c"] = each.source
            functions.append(_declared(each, len(step.outputs)))
        functions.append(_run(op.graph, kernels, f"run_{number}"))
        types = [_BOOL if name in op.graph.conditions else _FLOAT for name in op.graph.inputs]
        dims = [_dims(shape) for use in op.uses for shape in (*use.operands, *use.results)]
        tables += [
            f"static const int types_{number}[] = {{{', '.join(map(str, types))}}};",
            f"static const Dims uses_{number}[] = {{{', '.join(dims)}}};",
        ]
        counts = f"{len(op.graph.inputs)}, {len(op.graph.outputs)}, {len(op.uses)}"
        own = f"types_{number}, uses_{number}, run_{number}"
        rows.append(f'    OP("{op.name}", {counts}, {own}),')
    if ops:
        files["library.c"] = library_text([*functions, *tables], rows, DOMAIN)
    return files


def library_text(declared: Sequence[str], rows: Sequence[str], domain: str) -> str:
    """Return the file that registers ops.

    Args:
        declared: what the ops refer to.
        rows: the ops.
        domain: of all of them.
    """
    shared = (Path(__file__).resolve().parent / "custom_op.h").read_text(encoding="utf-8")
    listed = ["static const Op ops[] = {", *rows, "};"]
    return "\n".join([shared, *declared, *listed, _REGISTER.format(domain=domain), ""])


_REGISTER = """
#ifdef _WIN32
__declspec(dllexport)
#else
__attribute__((visibility("default")))
#endif
Status *RegisterCustomOps(Options *options, const Base *base) {{
  return registered(options, base, "{domain}", ops, sizeof ops / sizeof *ops);
}}"""


def _kernels(graph: MuGraph, prefix: str) -> dict[str, CKernel]:
    """Return the kernels of a μGraph by name; the functions have names of ours, not the file's."""
    device = kernel_tensors(graph)
    return {
        kernel.name: emit_c(
            replace(kernel, name=f"{prefix}_{place}"),
            {name: device[name] for name in kernel.operands},
        )
        for place, kernel in enumerate(graph.kernels)
    }


def _declared(kernel: CKernel, results: int) -> str:
    names = kernel.parameters
    of_operands = [
        "const unsigned char *" if name in kernel.conditions else "const float *"
        for name in names[: len(names) - results]
    ]
    return f"extern void {kernel.name}({', '.join([*of_operands, *['float *'] * results])});"


def _run(graph: MuGraph, kernels: Mapping[str, CKernel], name: str) -> str:
    """Return the function that calls kernels in turn, with memory for what is between them."""
    places = {each: f"tensors[{n}]" for n, each in enumerate([*graph.inputs, *graph.outputs])}
    device = kernel_tensors(graph)
    between: list[str] = []
    for kernel in graph.kernels:
        for output in kernel.outputs:
            if output not in places:
                places[output] = f"between[{len(between)}]"
                between.append(
                    f"{places[output]} = malloc({count(device[output])} * sizeof(float))"
                )
    calls = []
    for kernel in graph.kernels:
        given = ", ".join(places[each] for each in (*kernel.operands, *kernel.outputs))
        calls.append(f"{kernels[kernel.name].name}({given});")
    head = f"static int {name}(void *const *tensors) {{"
    if not between:
        return " ".join([head, *calls, "return 1; }"])
    size = len(between)
    made = " && ".join(f"({each})" for each in between)
    return "\n".join(
        [
            head,
            f"  void *between[{size}] = {{0}};",
            f"  const int has_memory = {made};",
            f"  if (has_memory) {{ {' '.join(calls)} }}",
            f"  for (int number = 0; number < {size}; ++number) free(between[number]);",
            "  return has_memory;",
            "}",
        ]
    )


def _dims(shape: Shape) -> str:
    inside = ", ".join(map(str, shape)) or "0"
    return f"{{{len(shape)}, {{{inside}}}}}"
