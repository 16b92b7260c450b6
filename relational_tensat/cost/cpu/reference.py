"""What the processor is watched by: some arithmetic and some memory, run as everything else is."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

import numpy as np

from relational_tensat.cost.cpu.baseline import Baseline
from relational_tensat.cost.cpu.processor import instruction_sets, processor_name
from relational_tensat.cost.cpu.quiet import Quiet
from relational_tensat.cost.cpu.session import prepare
from relational_tensat.tensor import Node, TensorType, Weight, build_graph

#: A second thread on the core slows arithmetic more than memory: some 20 µs of each.
_LEFT = TensorType("float32", (64, 128))
_RIGHT = TensorType("float32", (128, 128))
_STREAM = TensorType("float32", (64, 1024))


@cache
def processor_watch() -> Quiet:
    """Return the watch over this machine's processor: one, for it learns; the first call takes 0.5 s.

    Raises:
        InputError: what was learned before cannot be read, or what is learned now not written.
    """
    rng = np.random.default_rng(0)
    values = {kind: rng.random(kind.shape, dtype=np.float32) for kind in (_LEFT, _RIGHT, _STREAM)}
    graph = build_graph(
        "reference",
        {"left": _LEFT, "stream": _STREAM},
        {"right": Weight(_RIGHT, values[_RIGHT])},
        [Node("matmul", ("left", "right"), ("product",)), Node("relu", ("stream",), ("positive",))],
        ["product", "positive"],
    )
    name = f"{processor_name()}; {instruction_sets()}; onnxruntime {version('onnxruntime')}"
    run = prepare(graph, {"left": values[_LEFT], "stream": values[_STREAM]})
    return Quiet(run, Baseline(name))
