"""The C of a library: each kernel as a function, and a custom op of onnxruntime that calls it.

``custom_op.h`` has every fact about onnxruntime's ABI, and ``custom_op.c`` what all ops share. The C of a
kernel has the same names in each library that the kernel is in, so that it is compiled once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.fusion.integer_parts import INTEGERS
from relational_tensat.mugraph.graph.dims import count
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernels.c_loops import SizedLoops
from relational_tensat.mugraph.kernels.c_tensors import C_TYPES, scale_of, zero_of
from relational_tensat.mugraph.kernels.emit_c import LEAST_PART_US, CKernel, emit_c, scaled
from relational_tensat.rules.backends.fused_chain import DOMAIN

#: Of a model with dynamic dims, below 0 is a multiple of the size of a loop around the kernel: -1 is that
#: of the first, -2 that of the second; 8 less is twice as much. See ``multiple_of_loop``.
Shape = tuple[int, ...]

#: As ``custom_op.h`` has them.
MOST_DIMS, MOST_TENSORS, MOST_LOOPS = 16, 64, 8
#: Of a tensor: 1 GiB. Each op is run once before its library is kept.
MOST_ELEMENTS = 1 << 28
#: Allowed names of an op's function: it stands in C as a text, and in names of files.
_NAME = re.compile(r"fused_[0-9A-Za-z_]{1,80}")
#: ONNX's numbers of element types.
ONNX_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "bool": 9}


@dataclass(frozen=True, slots=True)
class KernelUse:
    """The shapes of a call.

    Attributes:
        operands, results: as the model has them; the elements lie as those of the μGraph's tensors, behind
            the dims of loops.
    """

    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]

    def at(self, sizes: Sequence[int]) -> KernelUse:
        """Return the shapes where loops have these sizes."""

        def own(shapes: Sequence[Shape]) -> tuple[Shape, ...]:
            return tuple(tuple(size_at(size, sizes) for size in shape) for shape in shapes)

        return KernelUse(own(self.operands), own(self.results))


@dataclass(frozen=True, slots=True)
class KernelOp:
    """A custom op: a kernel under the name of a local function.

    Attributes:
        name: of the function, for example ``fused_k0123456789abcdef``.
        graph: the kernel, which computes in float32.
        uses: the shapes of its calls, at least one; exactly one where there are loops.
        loops: the sizes of loops around the kernel, each 0 where it may be any: calls say which.
        block: how many elements the kernel computes of all loops together; 0 where it is one of each loop.
        quantized: element types of operands and results that are integers in memory. A scale and a zero
            point of each are operands, too, behind the others.
    """

    name: str
    graph: MuGraph
    uses: tuple[KernelUse, ...]
    loops: tuple[int, ...] = ()
    block: int = 0
    quantized: Mapping[str, str] = field(default_factory=dict)

    @property
    def tensors(self) -> dict[str, str]:
        """The operands, then the results, with their element types."""
        graph, kinds = self.graph, self.quantized
        own = {
            n: "bool" if n in graph.conditions else kinds.get(n, "float32") for n in graph.inputs
        }
        for name in (each for each in (*graph.inputs, *graph.outputs) if each in kinds):
            own |= {scale_of(name): "float32", zero_of(name): kinds[name]}
        return {**own, **{name: kinds.get(name, "float32") for name in graph.outputs}}

    @property
    def operands(self) -> list[str]:
        """The operands of a call of the kernel."""
        return [name for name in self.tensors if name not in self.graph.outputs]


def multiple_of_loop(loop: int, factor: int) -> int:
    """Return a size of a shape: of a loop, 0 the first, so many times."""
    return -(loop + MOST_LOOPS * (factor - 1)) - 1


def loop_and_factor(size: int) -> tuple[int, int]:
    """Return which loop a size below 0 is of, and how many times."""
    factor, loop = divmod(-size - 1, MOST_LOOPS)
    return loop, factor + 1


def size_at(size: int, sizes: Sequence[int]) -> int:
    """Return a size of a shape where loops have these."""
    if size >= 0:
        return size
    loop, factor = loop_and_factor(size)
    return sizes[loop] * factor


def checked_op(op: KernelOp) -> KernelOp:
    """Return an op whose C reads and writes what onnxruntime gives it, and no more.

    Raises:
        InputError: it has another name, a step that is no kernel, or shapes of other sizes.
    """
    if not _NAME.fullmatch(op.name):
        raise InputError(f"{op.name!r}: no name of a kernel, expected fused_ and letters or digits")
    graph, dims = op.graph, kernel_tensors(op.graph)
    _check_quantized(op)
    dims |= {name: () for name in op.operands if name not in graph.inputs}
    if not graph.kernels or len(graph.kernels) != len(graph.steps):
        raise InputError(f"{op.name}: has steps that are no kernels")
    tensors = list(op.tensors)
    if any(count(dims[name]) > MOST_ELEMENTS for name in dims):
        raise InputError(f"{op.name}: a tensor of more than {MOST_ELEMENTS:,} elements")
    if not op.uses or len(tensors) > MOST_TENSORS:
        raise InputError(f"{op.name}: {len(tensors)} tensors in {len(op.uses)} uses")
    _check_loops(op)
    for use in op.uses:
        shapes = [*use.operands, *use.results]
        counts = (len(use.operands), len(use.results))
        if counts != (len(op.operands), len(graph.outputs)):
            raise InputError(f"{op.name}: a use of {counts[0]} operands and {counts[1]} results")
        for name, shape in zip(tensors, shapes, strict=True):
            rank, own = len(shape), count(dims[name])
            looped, shape = parted(shape) if op.loops else ((), shape)
            if op.block and looped:  # checked to be all loops, and nothing within
                own //= op.block
            if rank > MOST_DIMS or min(shape, default=1) < 1:
                raise InputError(f"{op.name}: a shape of {rank} dims, {list(shape)}")
            if math.prod(shape) != own:
                raise InputError(f"{op.name}: {list(shape)} has other than {own:,} elements")
    return op


def _check_quantized(op: KernelOp) -> None:
    """Check that integers are of one kernel without loops, of types that C knows.

    Raises:
        InputError: they are not.
    """
    if not op.quantized:
        return
    graph = op.graph
    named = {*graph.inputs, *graph.outputs}
    kinds = {*op.quantized.values()}
    if not op.quantized.keys() <= named - graph.conditions or not kinds <= INTEGERS:
        raise InputError(f"{op.name}: integers of {dict(op.quantized)}")
    if op.loops or len(graph.kernels) != 1 or len(op.tensors) != len(named) + 2 * len(op.quantized):
        raise InputError(f"{op.name}: integers of other than one kernel of fixed sizes")


def parted(shape: Shape) -> tuple[tuple[int, ...], Shape]:
    """Return the numbers of the loops over a shape's outer dims, the first 0, and the inner dims.

    A dim that is a multiple of a loop has an inner one.

    Raises:
        InputError: a loop stands twice, or within other dims.
    """
    first = 1 + max((place for place, size in enumerate(shape) if size < 0), default=-1)
    outer = [size for size in shape[:first] if size != 1]
    loops = [loop_and_factor(size) for size in outer]
    *before, last = [factor for _, factor in loops] or [1]
    if max(outer, default=-1) >= 0 or len(dict(loops)) < len(loops) or max(before, default=1) > 1:
        raise InputError(f"{list(shape)}: loops are over different outer dims")
    inner = shape[first:] if last == 1 else (last, *shape[first:])
    return tuple(loop for loop, _ in loops), inner


def _check_loops(op: KernelOp) -> None:
    """Check that a call says the sizes of all loops, and that each turn has results of its own.

    Raises:
        InputError: it does not.
    """
    if not op.loops:
        if op.block:
            raise InputError(f"{op.name}: blocks of no loops")
        return
    every = set(range(len(op.loops)))
    if len(every) > MOST_LOOPS or not all(0 <= size <= MOST_ELEMENTS for size in op.loops):
        raise InputError(f"{op.name}: loops of sizes {list(op.loops)}")
    if len(op.uses) != 1 or len(op.graph.kernels) != 1:
        raise InputError(f"{op.name}: loops around other than one kernel, or for several uses")
    (use,) = op.uses
    operands, results = ([set(parted(s)[0]) for s in own] for own in (use.operands, use.results))
    if set().union(*operands) != every or any(own != every for own in results):
        raise InputError(f"{op.name}: loops that operands do not say, or results do not have")
    if op.block:
        _check_block(op)


def _check_block(op: KernelOp) -> None:
    """Check that a kernel of blocks has whole ones of all loops, or one number.

    Raises:
        InputError: it has not.
    """
    (use,), dims = op.uses, kernel_tensors(op.graph)
    shapes = zip((*op.graph.inputs, *op.graph.outputs), (*use.operands, *use.results), strict=True)
    for name, shape in shapes:
        loops, inner = parted(shape)
        is_block = loops == tuple(range(len(op.loops))) and set(inner) <= {1}
        if (loops and not is_block) or count(dims[name]) != (op.block if loops else 1):
            raise InputError(f"{op.name}: {list(shape)} is no block of {op.block} elements")


def sources_of(ops: Sequence[KernelOp]) -> dict[str, str]:
    """Return the files of a library, by name; none for no ops.

    They are one for each kernel, ``custom_op.c``, and ``library.c`` with a row for each op.

    Raises:
        InputError: an op is not right, or C cannot say a kernel: those with products are left to libraries.
    """
    files: dict[str, str] = {}
    functions, tables, rows = [], [], []
    for number, op in enumerate(map(checked_op, ops)):
        kernels = kernels_of(op)
        for step in op.graph.kernels:
            each = kernels[step.name]
            files[f"{each.name}.c"] = each.source
            functions.append(_declared(each, len(step.outputs)))
        functions += _run(op, kernels, f"run_{number}")
        types = [ONNX_TYPES[kind] for kind in op.tensors.values()]
        dims = [_dims(shape) for use in op.uses for shape in (*use.operands, *use.results)]
        tables += [
            f"static const int types_{number}[] = {{{', '.join(map(str, types))}}};",
            f"static const Dims uses_{number}[] = {{{', '.join(dims)}}};",
            f"static const int64_t loops_{number}[] = {{{', '.join(map(str, (*op.loops, -1)))}}};",
        ]
        counts = f"{len(op.operands)}, {len(op.graph.outputs)}, {len(op.uses)}"
        own = f"types_{number}, uses_{number}, loops_{number}, run_{number}"
        rows.append(f'    OP("{op.name}", {counts}, {own}),')
    if ops:
        files |= library_files([*functions, *tables], rows, DOMAIN)
    return files


def library_files(declared: Sequence[str], rows: Sequence[str], domain: str) -> dict[str, str]:
    """Return the file that registers ops, and the one that these share, by name.

    Args:
        declared: the declarations that the ops refer to.
        rows: the ops.
        domain: of all of them.
    """
    folder = Path(__file__).resolve().parent
    head, shared = (
        (folder / n).read_text(encoding="utf-8") for n in ("custom_op.h", "custom_op.c")
    )
    listed = ["static Op ops[] = {", *rows, "};"]
    return {
        "custom_op.c": shared.replace('#include "custom_op.h"', head),
        "library.c": "\n".join([head, *declared, *listed, _REGISTER.format(domain=domain), ""]),
    }


_REGISTER = """
#ifdef _WIN32
__declspec(dllexport)
#else
__attribute__((visibility("default")))
#endif
Status *RegisterCustomOps(Options *options, const Base *base) {{
  return registered(options, base, "{domain}", ops, sizeof ops / sizeof *ops);
}}"""


def kernels_of(op: KernelOp) -> dict[str, CKernel]:
    """Return the kernels of an op by name; the functions are named for the op, not as the file says."""
    graph, use, loops = op.graph, op.uses[0], None
    prefix = op.name.removeprefix("fused_")
    device = kernel_tensors(graph)
    if op.loops:
        shapes = zip([*graph.inputs, *graph.outputs], [*use.operands, *use.results], strict=True)
        of = {name: parted(shape)[0] for name, shape in shapes}
        loops = SizedLoops(len(op.loops), of, op.block)
    return {
        kernel.name: emit_c(
            replace(kernel, name=f"{prefix}_{place}"),
            {name: device[name] for name in kernel.operands},
            may_be_parted=True,
            loops=loops,
            quantized=op.quantized,
        )
        for place, kernel in enumerate(graph.kernels)
    }


def _declared(kernel: CKernel, results: int) -> str:
    kinds = [f"{C_TYPES[kernel.kinds.get(name, 'float32')]} *" for name in kernel.parameters]
    of_operands = [f"const {kind}" for kind in kinds[: len(kinds) - results]]
    parts = ["long part", "long parts"] if kernel.most_parts > 1 or kernel.turn_ns else []
    parts += ["const int64_t *sizes"] if kernel.turn_ns else []
    declared = ", ".join([*of_operands, *kinds[len(kinds) - results :], *parts])
    return f"extern void {kernel.name}({declared});"


def _run(op: KernelOp, kernels: Mapping[str, CKernel], name: str) -> list[str]:
    """Return the function that calls kernels in turn, with memory for what is between them.

    Of each there is one before that calls it with the tensors where they are, for one part of its work.
    """
    graph = op.graph
    names = list(op.tensors)
    made = [each for kernel in graph.kernels for each in kernel.outputs]
    between = [each for each in made if each not in names]
    places = {each: place for place, each in enumerate([*names, *between])}
    lines, calls = [], []
    for kernel in graph.kernels:
        own = kernels[kernel.name]
        integers = scaled(op.quantized, kernel)
        scales = [own for n in integers for own in (scale_of(n), zero_of(n))]
        every = (*kernel.operands, *scales, *kernel.outputs)
        given = [f"own->tensors[{places[n]}]" for n in every]
        given += ["(long)part", "own->parts"] if own.most_parts > 1 or own.turn_ns else []
        most = str(own.most_parts)
        if own.turn_ns:
            given.append(f"own->tensors[{len(names)}]")
            least_ns = 1000 * LEAST_PART_US * max(1, op.block)
            most = f"parts_of(tensors[{len(names)}], {len(op.loops)}, {own.turn_ns}, {least_ns})"
        lines += [
            f"static void part_of_{own.name}(void *split, size_t part) {{",
            f"  const Split *own = split;\n  {own.name}({', '.join(given)});\n}}",
        ]
        calls.append(f"in_parts(context, part_of_{own.name}, tensors, {most})")
    if not between:
        head = f"static Status *{name}(Context *context, void *const *tensors) {{"
        turns = [f"  if (!status) status = {call};" for call in calls]
        return [*lines, head, "  Status *status = NULL;", *turns, "  return status;\n}"]
    first, last, device = len(names), len(places), kernel_tensors(graph)
    sizes = [f"(tensors[{places[n]}] = malloc({4 * count(device[n])}))" for n in between]
    return [
        *lines,
        f"static Status *{name}(Context *context, void *const *given) {{",
        f"  void *tensors[{last}] = {{0}};",
        f"  memcpy(tensors, given, {first} * sizeof *tensors);",
        f"  Status *status = {' && '.join(sizes)} ? NULL : CREATE_STATUS(FAIL, NO_MEMORY);",
        *(f"  if (!status) status = {call};" for call in calls),
        f"  for (int number = {first}; number < {last}; ++number) free(tensors[number]);",
        "  return status;\n}",
    ]


def _dims(shape: Shape) -> str:
    inside = ", ".join(map(str, shape)) or "0"
    return f"{{{len(shape)}, {{{inside}}}}}"
