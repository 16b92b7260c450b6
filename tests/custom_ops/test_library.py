"""The C of a library: hostile names, memory between kernels, and no byte beside the operands."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from bench.models.builder import GraphBuilder
from relational_tensat.base.errors import InputError
from relational_tensat.base.folders import CACHE_VARIABLE
from relational_tensat.custom_ops import library, objects
from relational_tensat.custom_ops.build import LIBRARY, compile_library
from relational_tensat.custom_ops.function_check import model_of_call
from relational_tensat.custom_ops.library import (
    KernelOp,
    KernelUse,
    checked_op,
    kernels_of,
    sources_of,
)
from relational_tensat.custom_ops.objects import MOST_STACK_BYTES
from relational_tensat.custom_ops.sessions import register_library
from relational_tensat.mugraph.fusion.candidates import chain_candidates
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph
from relational_tensat.mugraph.kernel_finder import SearchEffort
from relational_tensat.tensor import Graph
from tests.custom_ops.fused_files import builder, fused_file, normed, run_sanitized, source_of
from tests.with_compilers import needs_c

pytestmark = needs_c
HOSTILE = '*/ "\n\\ #include </etc/passwd> \x1b[2J ??/ \u202e'


def _kernel(graph: Graph) -> MuGraph:
    (candidate,) = chain_candidates(graph)
    return builder().make(candidate, SearchEffort(1, 0)).graph


def _in_turn(first: MuGraph, second: MuGraph) -> MuGraph:
    """Return a μGraph of two kernels, the second of which reads the result of the first."""
    (one,), (other,) = first.kernels, second.kernels
    (between,), (given,) = first.outputs, second.inputs
    iterators = tuple(replace(each, tensor=between) for each in other.block.iterators)
    savers = tuple(replace(each, output=f"{each.output}_last") for each in other.block.savers)
    block = replace(other.block, iterators=iterators, savers=savers)
    last = tuple(saver.output for saver in savers)
    assert given
    return MuGraph("two", first.inputs, (one, Kernel("two", block)), last)


def test_what_is_between_kernels_has_memory_of_its_own(tmp_path: Path) -> None:
    b = GraphBuilder("first")
    first = _kernel(b.build(b.op("tanh", b.op("mul", b.input("x", 3, 5), b.input("y", 3, 5)))))
    b = GraphBuilder("second")
    second = _kernel(b.build(b.op("sigmoid", b.op("abs", b.input("z", 3, 5)))))
    op = KernelOp("fused_two", _in_turn(first, second), (KernelUse(((3, 5), (3, 5)), ((3, 5),)),))
    files = sources_of([op])
    assert "malloc" in files["library.c"]
    compile_library(files, tmp_path, "cc")
    model = _call(op)
    options = onnxruntime.SessionOptions()
    register_library(options, tmp_path / LIBRARY)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    x, y = (np.random.default_rng(n).standard_normal((3, 5)).astype(np.float32) for n in (0, 1))
    (found,) = session.run(None, {"given_0": x, "given_1": y})
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-np.abs(np.tanh(x * y)))), rtol=1e-5)


def _call(op: KernelOp) -> bytes:
    """Return a model of one call; the file has no function that could stand for the kernel."""
    model = model_of_call(op, op.uses[0])
    assert not model.functions
    content: bytes = model.SerializeToString()
    return content


def test_no_name_of_a_file_is_in_code(tmp_path: Path) -> None:
    (op,) = fused_file(normed(), tmp_path / "model.onnx")
    block = op.graph.kernels[0].block
    names = {name: f"{name}{HOSTILE}" for name in op.graph.inputs}
    iterators = tuple(replace(each, tensor=names[each.tensor]) for each in block.iterators)
    savers = tuple(replace(each, output=each.output + HOSTILE) for each in block.savers)
    kernel = Kernel(f"malloc{HOSTILE}", replace(block, iterators=iterators, savers=savers))
    graph = MuGraph(
        HOSTILE,
        {names[name]: dims for name, dims in op.graph.inputs.items()},
        (kernel,),
        tuple(saver.output for saver in savers),
    )
    files = sources_of([replace(op, graph=graph)])
    for text in files.values():
        assert "passwd>" not in text and "\x1b" not in text and "malloc*" not in text
        assert all(32 <= ord(char) < 127 or char == "\n" for char in text)
    compile_library(files, tmp_path, "cc")  # and it is C
    for name in (f"fused_{HOSTILE}", "fused_", "RegisterCustomOps", f"fused_{'k' * 100}"):
        with pytest.raises(InputError, match="no name of a kernel"):
            checked_op(replace(op, name=name))


def test_a_kernel_with_more_stack_than_threads_have_is_no_library(tmp_path: Path) -> None:
    """A row may lie on the stack while several passes go over it."""
    row = MOST_STACK_BYTES // 4
    for elements in (row // 2, row + 1):
        body = f"float row[{elements}]; for (long i = 0; i < {elements}; ++i) row[i] = x[i] * x[0];"
        again = f"for (long i = {elements} - 1; i >= 0; --i) y[i] = row[i] + row[0];"
        files = {"one.c": f"void one(const float *x, float *y) {{ {body} {again} }}\n"}
        if elements < row:
            compile_library(files, tmp_path, "cc")
            continue
        with pytest.raises(InputError, match=r"one\.c: does not compile: .*frame size"):
            compile_library(files, tmp_path, "cc")


def test_each_file_is_compiled_once_whatever_libraries_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the file with the rows of its ops is each library's own; a clone is for other processors."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    compiled: list[str] = []
    run = objects.run_compiler

    def counted(line: Sequence[str], name: str) -> None:
        compiled.append(name)
        run(line, name)

    monkeypatch.setattr(objects, "run_compiler", counted)
    ops = [*fused_file(normed(3, 5), tmp_path / "one.onnx")]
    ops += fused_file(normed(4, 6), tmp_path / "other.onnx")
    for number, own in enumerate((ops[:1], ops[1:], ops)):
        (tmp_path / str(number)).mkdir()
        compile_library(sources_of(own), tmp_path / str(number), "cc")
    kernels = [f"kernel_{op.name.removeprefix('fused_')}_0.c" for op in ops]
    assert sorted(compiled) == sorted([*kernels, "custom_op.c", *3 * ["library.c"]])
    (kernel,) = kernels_of(ops[0]).values()
    (tmp_path / "kernel.c").write_text(kernel.source)
    if flags := objects.machine_flags("cc"):
        told = ["cc", *flags, "-dM", "-E", str(tmp_path / "kernel.c")]
        assert "IS_CLONED" not in subprocess.run(told, capture_output=True, text=True).stdout


_THREADS = """
#include "custom_op.c"
static size_t asked;
static Status *parallel_for(
    const Context *context, void (*task)(void *, size_t), size_t total, size_t batches, void *data) {
  asked = total;
  return (Status *)context;
}
static int calls;
static void run(void *split, size_t part) { calls += ((Split *)split)->parts == 1 && !part; }
int main(void) {
  Function table[275] = {0};
  table[274] = (Function)parallel_for;
  api = table;
  Context *failed = (Context *)&asked;
  processors = 4;
  if (in_parts(failed, run, NULL, 9) != (Status *)failed || asked != 4) return 1;
  if (in_parts(failed, run, NULL, 3) != (Status *)failed || asked != 3) return 2;
  if (in_parts(failed, run, NULL, 1) || in_parts(failed, run, NULL, 0) || calls != 2) return 3;
  processors = 1;
  return in_parts(failed, run, NULL, 9) || calls != 3 ? 4 : 0;
}
"""


def test_parts_are_bounded_and_what_threads_report_is_reported(tmp_path: Path) -> None:
    """As many as there are processors at most; one is run where it is called, by no thread."""
    (tmp_path / "main.c").write_text(_THREADS)
    command = ["cc", "-std=gnu11", f"-I{Path(library.__file__).parent}", "main.c", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run(["./main"], cwd=tmp_path).returncode == 0


_MAIN = """
#include <stdio.h>
#include <stdlib.h>
extern void kernel_0_0(const float *, const float *, float *);
int main(void) {{
  float *x = malloc({n} * 4), *y = malloc({n} * 4), *z = malloc({n} * 4);
  for (int i = 0; i < {n}; ++i) x[i] = i % 7 - 3, y[i] = i % 5 - 2;
  kernel_0_0(x, y, z);
  printf("%g", z[{n} - 1]);
  free(x), free(y), free(z);
}}
"""


@pytest.mark.nightly
@pytest.mark.parametrize(
    "shape", [(1, 2), (1, 17), (2, 2), (3, 5), (7, 33), (15, 16), (2, 129), (31, 63), (5, 1000)]
)
def test_a_kernel_touches_nothing_beside_its_operands(
    shape: tuple[int, int], tmp_path: Path
) -> None:
    """Its own memory is as large as it has to be, and the compiler watches each access."""
    graph = normed(*shape)
    (op,) = fused_file(graph, tmp_path / "model.onnx")
    assert [*op.graph.inputs] and len(op.graph.kernels) == 1
    printed = run_sanitized(tmp_path, source_of(op), _MAIN.format(n=shape[0] * shape[1]))
    assert np.isfinite(float(printed))
