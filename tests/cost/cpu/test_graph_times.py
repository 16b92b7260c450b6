"""A heat runs in onnxruntime whatever order sessions are made in."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from relational_tensat.cost.cpu import graph_times
from relational_tensat.cost.cpu.graph_times import run_heat
from relational_tensat.formats import to_onnx_model
from relational_tensat.tensor import Graph, Node, build_graph
from tests.graphs import f32

_ROWS = 256


def chain(length: int) -> Graph:
    """Return so many exponentials, which onnxruntime does not fuse."""
    nodes = [Node("exp" if i % 2 else "neg", (f"v{i}",), (f"v{i + 1}",)) for i in range(length)]
    return build_graph("chain", {"v0": f32(_ROWS, _ROWS)}, {}, nodes, [f"v{length}"])


@pytest.mark.parametrize(("seed", "threads"), [(0, 1), (1, 1), (0, 2)])
def test_all_graphs_are_run_and_the_first_is_the_measure(seed: int, threads: int) -> None:
    feeds = {"v0": np.ones((_ROWS, _ROWS), np.float32)}
    models = [to_onnx_model(chain(length)).SerializeToString() for length in (20, 2, 20)]
    first, *others = run_heat(models, feeds, seed, threads)
    assert first == 1.0
    assert len(others) == 2 and min(others) > 0


def test_quick_graphs_are_run_as_often_as_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []

    def prepare(model: bytes, *_: object) -> Callable[[], None]:
        def run() -> None:
            log.append(model.decode())
            until_s = time.thread_time() + (5e-4 if model == b"slow" else 0.0)
            while time.thread_time() < until_s:
                pass

        return run

    monkeypatch.setattr(graph_times, "prepare_model", prepare)
    run_heat([b"slow", b"quick"], {}, 0)
    assert log.count("quick") == log.count("slow")
