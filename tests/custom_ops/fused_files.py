"""Files with kernels as local functions, made without a run."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.models.builder import GraphBuilder
from relational_tensat.cost import AnalyticSource, load_profile
from relational_tensat.custom_ops.calls import ops_of_file
from relational_tensat.custom_ops.library import KernelOp, kernels_of
from relational_tensat.custom_ops.parts import builder_of
from relational_tensat.custom_ops.timed_part import node_of
from relational_tensat.formats import save_model
from relational_tensat.mugraph.fusion.candidates import KernelCandidate, chain_candidates
from relational_tensat.mugraph.fusion.kernel_builder import KernelBuilder
from relational_tensat.mugraph.kernel_finder import SearchEffort
from relational_tensat.tensor import Array, Graph, build_graph


def builder() -> KernelBuilder:
    return builder_of(AnalyticSource(load_profile("cpu")))


def fused_file(
    graph: Graph, file: Path, parts: Sequence[KernelCandidate] = ()
) -> tuple[KernelOp, ...]:
    """Write a graph with kernels in place of its parts; return the custom ops of the file."""
    made, kernels = builder(), []
    places = parts or list(chain_candidates(graph))
    nodes = list(graph.nodes)
    for place in places:
        kernel = made.make(place, SearchEffort(1, 0))
        kernels.append(kernel)
        at = nodes.index(place.nodes[-1])
        nodes[at] = node_of(place, kernel.key)
        nodes = [node for node in nodes if node not in place.nodes]
    fused = build_graph(graph.name, graph.inputs, graph.weights, nodes, graph.outputs)
    save_model(fused, file)
    return ops_of_file(file, fused, kernels)


def normed(rows: int = 7, width: int = 33) -> Graph:
    """The norm of a sum, times a function of one of its parts."""
    b = GraphBuilder("normed")
    x, y = b.input("x", rows, width), b.input("y", rows, width)
    added = b.op("add", b.op("tanh", x), y)
    mean = b.op("reduce_mean", added, axes=(1,), keepdims=True)
    return b.build(b.op("mul", b.op("sub", added, mean), b.op("sigmoid", y)))


def feeds_of(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Return a value for each input."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.standard_normal(kind.shape).astype(np.float32)
        for name, kind in graph.inputs.items()
    }


def source_of(op: KernelOp) -> str:
    """Return the C of an op of one kernel, as ``kernel_0_0``: programs of tests call it so."""
    (kernel,) = kernels_of(op).values()
    return kernel.source.replace(kernel.name, "kernel_0_0")


def run_sanitized(folder: Path, source: str, main: str) -> str:
    """Return what a program around a kernel prints; the compiler watches each access to memory."""
    (folder / "kernel.c").write_text(source)
    (folder / "main.c").write_text(main)
    command = [
        "cc", "-std=c11", "-O1", "-g", "-fopenmp-simd", "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all", "kernel.c", "main.c", "-o", "main", "-lm",
    ]  # fmt: skip
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run(["./main"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
