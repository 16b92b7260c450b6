"""Kernels whose sizes are arguments: right at all of them, and refused where no loop is."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from bench.models.builder import GraphBuilder
from relational_tensat.base.errors import InputError, RelationalTensatError, VerificationError
from relational_tensat.custom_ops import sized_parts
from relational_tensat.custom_ops.function_check import (
    compared_library,
    functions_of,
    model_of_call,
    uses_to_compare,
)
from relational_tensat.custom_ops.library import KernelOp, KernelUse, checked_op
from relational_tensat.custom_ops.manifest import read_manifest, write_manifest
from relational_tensat.custom_ops.sessions import register_library
from relational_tensat.mugraph.fusion.candidates import KernelCandidate
from relational_tensat.mugraph.graph.dims import dims_of
from relational_tensat.mugraph.kernel_finder import UnfitError
from relational_tensat.tensor import Array, Graph, build_graph
from relational_tensat.verify.evaluate import evaluate_graph
from tests.custom_ops.fused_files import feeds_of, run_sanitized, source_of
from tests.custom_ops.sized_graphs import (
    SIZES,
    Made,
    convolved,
    fused_file,
    gated,
    joined,
    largest,
    normed,
    parted,
    parts_of,
    turned,
    unwindowed,
    windowed,
)
from tests.tiers import nightly
from tests.with_compilers import needs_c

pytestmark = needs_c
#: No size of the model, primes among them; none of a batch at all.
_NEW = ((1, 1), (4, 13), (11, 2), (6, 31), (0, 4), (64, 17))


_OF_IMAGES = (windowed, unwindowed, convolved)


def _session(op: KernelOp, library: Path) -> onnxruntime.InferenceSession:
    """Return a session of one call, of any sizes."""
    model = model_of_call(op, op.uses[0])
    assert not model.functions
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.ClearField("shape")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    register_library(options, library)
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _given(graph: Graph, seed: int = 0) -> list[Array]:
    return [*feeds_of(graph, seed).values()]


@pytest.mark.parametrize(
    "made",
    [
        normed, turned, gated, partial(normed, width=200), partial(turned, heads=1),
        partial(gated, width=1), partial(gated, width=512), windowed, unwindowed, parted, joined,
        partial(windowed, width=33), partial(unwindowed, side=14), partial(joined, heads=1),
        convolved, partial(convolved, side=9, width=5, stride=2),
    ],
)  # fmt: skip
def test_a_kernel_is_right_at_sizes_that_nobody_has_looked_at(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "call.onnx"
    op = fused_file(parts_of(made), file)
    is_of_images = made.func in _OF_IMAGES if isinstance(made, partial) else made in _OF_IMAGES
    assert op.loops.count(0) == (1 if is_of_images else 2)
    session = _session(op, compared_library([op], functions_of(file)))
    for sizes in (*SIZES, *_NEW):
        graph = made(*sizes) if sizes[0] else made(1, *sizes[1:])
        values = _given(graph)
        if not sizes[0]:
            values = [
                value[:0] if value.ndim >= 3 and value.size > 1 and name != "w" else value
                for name, value in zip(graph.inputs, values, strict=True)
            ]
        (found,) = session.run(None, {f"given_{n}": value for n, value in enumerate(values)})
        if not sizes[0]:
            assert found.size == 0
            continue
        expected = evaluate_graph(graph, dict(zip(graph.inputs, values, strict=True)), {})
        np.testing.assert_allclose(found, expected[graph.outputs[0]], rtol=1e-5, atol=1e-6)


def test_sizes_that_do_not_go_with_each_other_are_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "call.onnx"
    op = fused_file(parts_of(normed), file)
    session = _session(op, compared_library([op], functions_of(file)))
    x, y, gain = _given(normed(4, 13))
    for given, line in (
        ((x, y[:12], gain), r"operand 1 is \[12, 16\], expected \[13, 16\]"),
        ((x, y, gain[:8]), r"operand 2 is \[8\], expected \[16\]"),
        ((x[..., :8], y, gain), r"operand 0 is \[4, 13, 8\], expected \[4, 13, 16\]"),
        ((x[0], y, gain), r"operand 0 is \[13, 16\], expected \[any, any, 16\]"),
    ):
        feeds = {f"given_{n}": np.ascontiguousarray(value) for n, value in enumerate(given)}
        with pytest.raises(Exception, match=line):
            session.run(None, feeds)


def test_a_dim_that_is_no_multiple_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "call.onnx"
    op = fused_file(parts_of(unwindowed), file)
    assert op.uses[0].operands == ((-1 - 3 * 8, 9, 8), (-1, 36, 8))
    session = _session(op, compared_library([op], functions_of(file)))
    x, y = _given(unwindowed(2, 1))
    for given, line in (
        ((x[:7], y), r"operand 0 is \[7, 9, 8\], expected \[any multiple of 4, 9, 8\]"),
        ((x[:4], y), r"operand 1 is \[2, 36, 8\], expected \[1, 36, 8\]"),
    ):
        with pytest.raises(Exception, match=line):
            session.run(None, {f"given_{n}": value for n, value in enumerate(given)})


def test_functions_of_reshapes_are_one_at_all_sizes(tmp_path: Path) -> None:
    file = tmp_path / "call.onnx"
    fused_file(parts_of(joined), file)
    (function,) = functions_of(file).values()
    constants = [node.attribute[0].t for node in function.node if node.op_type == "Constant"]
    assert [onnx.numpy_helper.to_array(each).tolist() for each in constants] == [[0, 0, 24]]


def test_dims_outside_of_a_dynamic_one_are_loops_of_one_size(tmp_path: Path) -> None:
    op = fused_file(parts_of(turned), tmp_path / "call.onnx")
    assert sorted(op.loops) == [0, 0, 3]
    library = compared_library([op], functions_of(tmp_path / "call.onnx"))
    values = _given(turned(2, 5, heads=4))
    with pytest.raises(Exception, match=r"operand 0 is \[2, 5, 4, 8\], expected \[2, 5, 3, 8\]"):
        _session(op, library).run(None, {f"given_{n}": v for n, v in enumerate(values)})


def _softmaxed(batch: int, sequence: int) -> Graph:
    b = GraphBuilder("softmaxed")
    x = b.input("x", batch, 8, sequence)
    return b.build(b.op("softmax", b.op("tanh", x), axis=2))


def _reduced(batch: int, sequence: int) -> Graph:
    """A mean over what is dynamic, with its size as a number."""
    b = GraphBuilder("reduced")
    total = b.op("reduce_sum", b.input("x", batch, sequence, 16), axes=(1,), keepdims=True)
    return b.build(b.op("tanh", b.op("smul", total, value=1.0 / sequence)))


def _summed(batch: int, sequence: int) -> Graph:
    b = GraphBuilder("summed")
    total = b.op("reduce_sum", b.input("x", batch, sequence, 16), axes=(1,), keepdims=True)
    return b.build(b.op("tanh", total))


def _sliced(batch: int, sequence: int) -> Graph:
    """The first row of each sequence; the attributes are those of all sizes."""
    b = GraphBuilder("sliced")
    x = b.op("tanh", b.input("x", batch, sequence, 16))
    first = b.op("slice", x, axes=(1,), starts=(0,), ends=(1,), steps=(1,))
    return b.build(b.op("mul", first, b.input("gain", 16)))


def _inner(batch: int, sequence: int) -> Graph:
    b = GraphBuilder("inner")
    return b.build(
        b.op("tanh", b.op("mul", b.input("x", batch, 16, sequence), b.input("y", 16, 1)))
    )


def _image(batch: int, sequence: int) -> Graph:
    return convolved(batch, 0, side=sequence + 2)


def _reshaped(batch: int, sequence: int) -> Graph:
    b = GraphBuilder("reshaped")
    x = b.op("reshape", b.input("x", batch, sequence, 16), shape=(batch * sequence, 16))
    return b.build(b.op("tanh", b.op("mul", x, b.input("gain", 16))))


def _fixed(batch: int, sequence: int) -> Graph:
    b = GraphBuilder("fixed")
    assert batch and sequence
    return b.build(b.op("tanh", b.op("mul", b.input("x", 4, 16), b.input("y", 4, 16))))


def _coinciding(batch: int, sequence: int) -> Graph:
    """Two results that have dims of one size where a sequence is 16 long."""
    b = GraphBuilder("coinciding")
    x = b.op("tanh", b.input("x", batch, sequence, 16))
    return b.build(b.op("mul", x, b.input("y", 1, 1, 16)))


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (_softmaxed, "it goes over a dim that depends on sizes"),
        (_reduced, "smul has attributes that depend on sizes"),
        (_summed, "it goes over a dim that depends on sizes"),
        (_sliced, "it goes over a dim that depends on sizes"),
        (_image, "it goes over a dim that depends on sizes"),
        (_inner, "fewer than 8 elements lie side by side"),
        (_reshaped, "a dim is of several loops"),
        (_fixed, "nothing of it depends on sizes"),
    ],
)
def test_parts_that_no_loop_is_around_have_no_kernel(made: Made, reason: str) -> None:
    with pytest.raises(RelationalTensatError, match=reason):
        largest(parts_of(made, SIZES[:5]))  # of sizes of 1 slices are others


def test_parts_are_sought_where_no_size_is_that_of_another_dim() -> None:
    parts = parts_of(_coinciding, ((1, 16), (2, 16), (3, 5), (1, 1)))
    assert parts.searched.types["x"] == _coinciding(3, 5).types["x"]
    assert parts.make(largest(parts)).operands[0] == (-1, -2, 16)
    only = parts_of(_coinciding, ((2, 16), (3, 16)))  # 16 is fixed, as far as anybody knows
    assert only.make(largest(only)).operands[0] == (-1, 16, 16)


def test_a_dim_is_a_product_of_index_variables() -> None:
    a, b, c = dims_of("a=3 b=2 c=4")
    assert sized_parts._grouped((1, 3, 8), (a, b, c)) == [(), (a,), (b, c)]
    for shape in ((3, 2, 4, 2), (4, 6)):
        with pytest.raises(UnfitError, match="no product of index variables"):
            sized_parts._grouped(shape, (a, b, c))


def test_a_program_that_is_wrong_at_another_size_is_no_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each size is looked at, not only that at which the part was found."""
    parts, tried = parts_of(normed), []

    def computes(candidate: object, seed: int) -> bool:
        tried.append(candidate)
        return len(tried) < len(SIZES)

    monkeypatch.setattr(sized_parts, "computes_nodes", computes)
    with pytest.raises(VerificationError, match="something else at"):
        parts.make(largest(parts))
    assert len(tried) == len(SIZES)


def test_functions_of_several_loops_are_compared_at_primes(tmp_path: Path) -> None:
    op = fused_file(parts_of(turned), tmp_path / "call.onnx")
    shapes = [use.operands[0] for use in uses_to_compare(op)]
    assert shapes[0] == (1, 1, 3, 8) and len(set(shapes)) == len(shapes) >= 4
    assert any(257 in shape for shape in shapes)
    assert any(len({*shape}) == 4 and 1 not in shape for shape in shapes)


@pytest.mark.parametrize("made", [turned, gated, windowed, joined])
def test_a_manifest_has_loops(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "call.onnx"
    op = fused_file(parts_of(made), file)
    write_manifest([op], file)
    assert read_manifest(file).ops == (op,)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda op: replace(op, block=0), "other than 512 elements"),
        (lambda op: replace(op, block=256), "no block of 256 elements"),
        (lambda op: replace(op, loops=()), "blocks of no loops"),
        (lambda op: _other_operands(op, (-1, -3, -2), (-1, -2, -3), (1, 1, 1)), "no block of 512"),
        (lambda op: _other_operands(op, (-1, -2), (-1, -2, -3), (1, 1, 1)), "no block of 512"),
        (lambda op: _other_operands(op, (-1, -2, -3), (-1, -2, -3), (-1, 1, 1)), "no block of 512"),
        (lambda op: _other_operands(op, (-1, -2, -3), (-1, -2, -3, 2), (1, 1, 1)), "no block of"),
    ],
)
def test_blocks_that_would_touch_other_memory_are_refused(
    change: Callable[[KernelOp], KernelOp], reason: str, tmp_path: Path
) -> None:
    op = fused_file(parts_of(gated), tmp_path / "call.onnx")
    assert checked_op(op).block == 512 and op.loops == (0, 3, 0)
    assert op.uses[0].operands == ((-1, -2, -3), (-1, -2, -3), (1, 1, 1))
    with pytest.raises(InputError, match=reason):
        checked_op(change(op))


def _other_operands(op: KernelOp, *shapes: tuple[int, ...]) -> KernelOp:
    (use,) = op.uses
    return replace(op, uses=(KernelUse(shapes, use.results),))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda op: replace(op, loops=()), "a shape of 3 dims"),
        (lambda op: replace(op, loops=(0,)), "loops that operands do not say"),
        (lambda op: replace(op, loops=(0, 0, 0)), "loops that operands do not say"),
        (lambda op: replace(op, loops=(0, -2)), "loops of sizes"),
        (lambda op: replace(op, loops=(0,) * 9), "loops of sizes"),
        (lambda op: replace(op, uses=op.uses * 2), "for several uses"),
        (lambda op: _other_operands(op, (-1, -1, 16), (-2, 16), (16,)), "different outer dims"),
        (lambda op: _other_operands(op, (-1, 16, -2), (-2, 16), (16,)), "different outer dims"),
        (lambda op: _other_operands(op, (-9, -2, 16), (-2, 16), (16,)), "different outer dims"),
        (lambda op: _other_operands(op, (-1, -10, 16), (-2, 16), (16,)), "other than 16 elements"),
        (lambda op: _other_operands(op, (-1, -1 - 8, 8), (-2, 16), (16,)), "different outer dims"),
        (lambda op: _other_operands(op, (-1, -2, 17), (-2, 16), (16,)), "other than 16 elements"),
        (lambda op: _other_operands(op, (-1, -3, 16), (-2, 16), (16,)), "do not say"),
        (lambda op: _other_operands(op, (-1, 16), (-1, 16), (16,)), "do not say"),
    ],
)
def test_loops_that_would_touch_other_memory_are_refused(
    change: Callable[[KernelOp], KernelOp], reason: str, tmp_path: Path
) -> None:
    op = fused_file(parts_of(normed), tmp_path / "call.onnx")
    assert checked_op(op) and op.uses[0].operands == ((-1, -2, 16), (-2, 16), (16,))
    with pytest.raises(InputError, match=reason):
        checked_op(change(op))


_MAIN = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern void kernel_0_0(const float *, const float *, const float *, float *, long, long, const int64_t *);
static float *some(long count) {{
  float *made = malloc(count * sizeof(float));
  for (long n = 0; n < count; ++n) made[n] = n % 7 - 3;
  return made;
}}
int main(void) {{
  for (int64_t batch = 0; batch < 5; ++batch)
    for (int64_t rows = 0; rows < 6; ++rows) {{
      const int64_t sizes[] = {{batch, rows}};
      const long count = batch * rows * {width};
      float *x = some(count), *y = some(rows * {width}), *gain = some({width});
      float *whole = some(count), *parted = some(count);
      kernel_0_0(x, y, gain, whole, 0, 1, sizes);
      for (long part = 0; part < 3; ++part) kernel_0_0(x, y, gain, parted, part, 3, sizes);
      if (memcmp(whole, parted, count * sizeof(float))) return printf("parts"), 1;
      free(x), free(y), free(gain), free(whole), free(parted);
    }}
  return 0;
}}
"""


_BLOCKS = """
int main(void) {
  for (int64_t batch = 0; batch < 4; ++batch)
    for (int64_t rows = 0; rows < 700; rows += 170) {
      const int64_t sizes[] = {batch, 3, rows};
      const long count = batch * 3 * rows;
      float *x = some(count), *y = some(count), *one = some(1);
      float *whole = some(count), *parted = some(count);
      kernel_0_0(x, y, one, whole, 0, 1, sizes);
      for (long part = 0; part < 3; ++part) kernel_0_0(x, y, one, parted, part, 3, sizes);
      if (memcmp(whole, parted, count * sizeof(float))) return printf("parts"), 1;
      free(x), free(y), free(one), free(whole), free(parted);
    }
  return 0;
}
"""


@pytest.mark.parametrize("width", [16, 33, pytest.param(1000, marks=pytest.mark.nightly)])
def test_no_turn_touches_what_is_beside_its_operands(width: int, tmp_path: Path) -> None:
    """The compiler watches each access, and parts of turns are what all are."""
    op = fused_file(parts_of(partial(normed, width=width)), tmp_path / "call.onnx")
    run_sanitized(tmp_path, source_of(op), _MAIN.format(width=width))


def test_no_block_touches_what_is_beside_its_operands(tmp_path: Path) -> None:
    op = fused_file(parts_of(gated), tmp_path / "call.onnx")
    head, _, _ = _MAIN.format(width=1).partition("int main")
    run_sanitized(tmp_path, source_of(op), head + _BLOCKS)


_HEADS = """
int main(void) {
  for (int64_t batch = 0; batch < 4; ++batch)
    for (int64_t rows = 0; rows < 6; ++rows) {
      const int64_t sizes[] = {batch, rows, 3};
      const long count = batch * 3 * rows * 8;
      float *x = some(count), *gain = some(24), *whole = some(count), *parted = some(count);
      kernel_0_0(x, gain, whole, 0, 1, sizes);
      for (long part = 0; part < 3; ++part) kernel_0_0(x, gain, parted, part, 3, sizes);
      if (memcmp(whole, parted, count * sizeof(float))) return printf("parts"), 1;
      free(x), free(gain), free(whole), free(parted);
    }
  return 0;
}
"""


def test_no_turn_of_a_part_of_a_dim_touches_what_is_beside_it(tmp_path: Path) -> None:
    op = fused_file(parts_of(joined), tmp_path / "call.onnx")
    assert op.loops == (0, 0, 3)
    head, _, _ = _MAIN.format(width=1).partition("int main")
    declared = "const float *, const float *, float *, long"
    head = head.replace("const float *, const float *, const float *, float *, long", declared)
    run_sanitized(tmp_path, source_of(op), head + _HEADS)


def _random(which: int, batch: int, sequence: int) -> Graph:
    """Sums, products, functions and norms of operands that lack some dims, or have 1 of them."""
    rng, b, width = random.Random(which), GraphBuilder("random"), 17 + which % 29
    if which % 4 == 1:
        return _random_of_elements(rng, b, batch, sequence)
    if which % 4 == 3:
        return _random_of_heads(rng, b, batch, sequence)
    shapes = [(batch, sequence), (1, sequence), (batch, 1), (1, 1)]
    value = b.op("tanh", b.input("x", batch, sequence, width))
    for step in range(rng.randint(2, 6)):
        match rng.choice(("binary", "function", "norm", "turn" if step == 0 else "binary")):
            case "binary":
                own = b.input(f"y{step}", *rng.choice(shapes), width)
                value = b.op(rng.choice(("add", "mul", "sub")), value, own)
            case "function":
                value = b.op(rng.choice(("gelu", "sigmoid", "abs", "neg")), b.op("tanh", value))
            case "norm":
                mean = b.op("reduce_mean", value, axes=(2,), keepdims=True)
                value = b.op("sub", value, mean)
            case "turn":
                part = b.op("slice", value, axes=(2,), starts=(0,), ends=(width // 2,), steps=(1,))
                last = b.op(
                    "slice", value, axes=(2,), starts=(width // 2,), ends=(width,), steps=(1,)
                )
                value = b.op("concat", last, part, axis=2)
    return b.build(value)


def _random_of_elements(rng: random.Random, b: GraphBuilder, batch: int, sequence: int) -> Graph:
    """Functions of elements, the innermost of which are dynamic."""
    shape = (batch, rng.randint(1, 9), sequence)
    value = b.op("tanh", b.input("x", *shape))
    for step in range(rng.randint(2, 6)):
        own = b.input(f"y{step}", *rng.choice((shape, (1, 1, 1))))
        value = b.op(rng.choice(("add", "mul", "sub")), value, own)
        value = b.op(rng.choice(("gelu", "sigmoid", "tanh")), value)
    return b.build(value)


def _random_of_heads(rng: random.Random, b: GraphBuilder, batch: int, sequence: int) -> Graph:
    """Rows that are parted into heads, each of which is turned, and joined again or not."""
    heads, width = rng.randint(1, 5), rng.choice((8, 11, 16))
    shape = (batch, sequence, heads, width)
    value = b.op("tanh", b.input("x", batch, sequence, heads * width))
    if rng.random() < 0.5:
        value = b.op("add", value, b.input("bias", heads * width))
    value = b.op("reshape", value, shape=shape)
    if rng.random() < 0.5:
        value = b.op("sub", value, b.op("reduce_mean", value, axes=(3,), keepdims=True))
    is_turned = rng.random() < 0.5
    if is_turned:
        value = b.op("transpose", value, perm=(0, 2, 1, 3))
    value = b.op("mul", value, b.input("scales", width))
    if not is_turned:
        value = b.op("reshape", value, shape=(batch, sequence, heads * width))
    return b.build(b.op("gelu", value))


@pytest.mark.parametrize("which", [range(8), nightly(range(8, 300))])
def test_parts_at_random_are_right_at_all_sizes(which: range, tmp_path: Path) -> None:
    """As their nodes are in float64, at primes and at others that nobody has looked at."""
    ops: dict[int, KernelOp] = {}
    places: dict[int, KernelCandidate] = {}
    functions: dict[str, onnx.FunctionProto] = {}
    for number in which:
        file, parts = tmp_path / f"{number}.onnx", parts_of(partial(_random, number))
        op, name = fused_file(parts, file), f"fused_{number}"
        functions[name] = functions_of(file)[op.name]
        functions[name].name = name
        ops[number], places[number] = replace(op, name=name), largest(parts)
    library = compared_library([*ops.values()], functions)
    for number, op in ops.items():
        session, place = _session(op, library), places[number]
        for sizes in ((1, 1), (1, 13), (4, 1), (7, 11), (19, 23)):
            graph = _random(number, *sizes)
            feeds = feeds_of(graph, number)
            wanted = [*place.inputs, *place.outputs]
            every = build_graph("every", graph.inputs, {}, graph.nodes, wanted)
            values = {**evaluate_graph(every, feeds, {}), **feeds}
            given = {f"given_{n}": values[read] for n, read in enumerate(place.inputs)}
            given = {name: value.astype(np.float32) for name, value in given.items()}
            for found, made in zip(session.run(None, given), place.outputs, strict=True):
                assert found.shape == values[made].shape
                np.testing.assert_allclose(found, values[made], rtol=3e-5, atol=3e-6)


def test_a_file_that_says_another_function_is_refused(tmp_path: Path) -> None:
    """At all of its sizes a kernel is held against the file's own function."""
    file = tmp_path / "call.onnx"
    op = fused_file(parts_of(normed), file)
    model = onnx.load(file)
    for node in model.functions[0].node:
        if node.op_type == "Tanh":
            node.op_type = "Sigmoid"
    onnx.save(model, file)
    with pytest.raises(InputError, match="something else than its function"):
        compared_library([op], functions_of(file))
