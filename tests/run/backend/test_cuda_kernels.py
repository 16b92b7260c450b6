"""The backend ``cuda``: what its rules make of graphs is what the executor runs, and what it costs."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bench.gpu.graphs_on_device import prepare_graphs, verify_on_device
from relational_tensat import Options, load_model, load_profile, optimize
from relational_tensat.base.errors import UsageError
from relational_tensat.cli.run_text import print_report
from relational_tensat.cost import as_source, graph_cost_us
from relational_tensat.cost import cuda as cost_cuda
from relational_tensat.cost.cuda import cuda_device as device_module
from relational_tensat.cost.cuda import graph_times
from relational_tensat.cost.cuda.cuda_device import CudaDevice
from relational_tensat.cost.cuda.protocol import Settings
from relational_tensat.cost.key import graph_configurations
from relational_tensat.gpu.plan import plan_graph
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.rules.backends.cuda.kernel_choice import kernels_of
from relational_tensat.rules.backends.expand_to_onnx import expand_to_onnx
from relational_tensat.rules.model import Apply, Term
from relational_tensat.run.backend_costs import BackendCosts
from relational_tensat.tensor import AttrValue, Graph, Node, TensorType, build_graph
from tests.cost.cuda.double import CudaDouble, FakeRecording, FakeTimer
from tests.cost.fakes import configuration
from tests.gpu.cases import kernel_cases
from tests.gpu.numpy_library import NumpyLibrary
from tests.gpu.runs import check
from tests.graphs import f32, weight
from tests.tiers import nightly

INPUTS = Path(__file__).parents[3] / "bench/inputs"


def costs(profile: str = "t4") -> BackendCosts:
    backend = load_backend("cuda")
    rules = backend.rules(has_fixed_shapes=True)
    return BackendCosts(as_source(load_profile(profile)), backend, rules)


def mlp() -> Graph:
    """Two layers with a skip: products with bias and an activation, or with bias and addend."""
    names = {"w": weight(64, 256), "v": weight(256), "u": weight(256, 64, seed=1), "b": weight(64)}
    nodes = [
        Node("matmul", ("x", "w"), ("a",)),
        Node("add", ("a", "v"), ("c",)),
        Node("relu", ("c",), ("d",)),
        Node("matmul", ("d", "u"), ("e",)),
        Node("add", ("e", "b"), ("f",)),
        Node("add", ("f", "x"), ("y",)),
    ]
    return build_graph("mlp", {"x": f32(2, 16, 64)}, names, nodes, ["y"])


def test_every_kernel_has_rules_and_a_cost() -> None:
    backend = load_backend("cuda")
    terms = [term for rule in backend.rules(has_fixed_shapes=True) for term in rule.targets]
    made = {op for term in terms for op in _operators(term)}
    assert {kernel.name for kernel in backend.kernels} <= made
    profile = load_profile("t4")
    for graph in kernel_cases("float32"):
        (kernel,) = graph_configurations(graph)
        *padding, last = kernels_of(kernel)
        assert last.op == kernel.op
        assert [each.op for each in padding] in ([], ["pad"])
        apart = expand_to_onnx(graph, graph)
        assert graph_cost_us(apart, profile) > costs().ask([kernel])[kernel].cost_us > 1.3


@pytest.mark.parametrize(
    ("dtype", "every"), [("float32", 3), nightly("float32", 1), nightly("bfloat16", 1)]
)
def test_what_is_written_for_a_kernel_is_that_kernel_again(dtype: str, every: int) -> None:
    for graph in list(kernel_cases(dtype))[::every]:
        kernels = costs().as_run(expand_to_onnx(graph, graph))
        assert kernels.count_ops() == graph.count_ops(), graph.nodes


def test_a_graph_is_few_kernels_that_compute_the_same() -> None:
    graph = mlp()
    kernels = costs().as_run(graph)
    assert kernels.count_ops() == {"cuda_product": 1, "cuda_product_add": 1}
    assert sum(check(kernels).bound.values()) == 2
    original, fused = verify_on_device(NumpyLibrary(), prepare_graphs(graph, [kernels]), "fp32")
    assert (original.implementations, fused.implementations) == ({"kernels": 6}, {"kernels": 2})


def test_launches_cost_what_they_do_in_a_cuda_graph() -> None:
    sum_of_kernels = 0.0
    for kernel in graph_configurations(costs().as_run(mlp())):
        profile = load_profile("t4")
        cost_us = profile.cost_us(kernel.op, kernel.inputs, kernel.output, dict(kernel.attrs))
        sum_of_kernels += cost_us - profile.launch_us + profile.graph_launch_us
    assert graph_cost_us(mlp(), costs()) == pytest.approx(sum_of_kernels)


def test_what_runs_is_what_the_executor_lowers_it_to() -> None:
    a, b, bias = f32(8, 16), f32(16, 4), f32(4)
    assert _ops("matmul", a, b, bias, act="relu") == ["matmul"]
    assert _ops("matmul", a, b, bias, act="tanh") == ["matmul", "cuda_elementwise"]
    assert _ops("matmul", a, b, act="sigmoid") == ["matmul", "sigmoid"]
    assert _ops("matmul", a, b, f32(8, 1)) == ["matmul", "add"]
    image, same = f32(1, 8, 16, 16), {"stride": (1, 1), "pad": "same"}
    filters, biases = f32(8, 8, 3, 3), f32(8)
    assert _ops("conv", image, filters, biases, **same) == ["conv"]
    assert _ops("conv", image, filters, **same, act="relu") == ["conv"]
    assert _ops("conv", image, filters, **same, act="tanh") == ["conv", "tanh"]
    assert _ops("conv", image, filters, biases, stride=(2, 2), pad="same") == ["pad", "conv"]
    assert _ops("transpose", f32(1, 8, 4), perm=(1, 0, 2)) == ["identity"]
    assert _ops("transpose", f32(2, 8, 4), perm=(1, 0, 2)) == ["transpose"]
    assert _ops("split", f32(8, 4), axis=0, sizes=(4, 4)) == ["identity"]
    assert _ops("split", f32(4, 8), axis=1, sizes=(4, 4)) == ["identity"]
    assert _ops("split", f32(4, 8), axis=1, sizes=(2, 6)) == ["split"]
    batches = f32(2, 1, 8, 16), f32(1, 3, 16, 4)
    assert _ops("matmul", *batches, act="tanh") == ["matmul"]  # no library has it


def _operators(term: Term) -> Iterator[str]:
    if isinstance(term, Apply):
        yield term.op
        for child in term.children:
            yield from _operators(child)


def _ops(op: str, *inputs: TensorType, **attrs: AttrValue) -> list[str]:
    return [kernel.op for kernel in kernels_of(configuration(op, *inputs, **attrs))]


def test_kernels_are_not_measured_on_a_processor() -> None:
    message = r"kernels of the backend cuda cannot be measured by cpu, expected cuda, or a profile"
    with pytest.raises(UsageError, match=message):
        optimize(mlp(), Options.of(cost="cpu", backend="cuda"))


def test_a_run_for_the_target(tmp_path: Path) -> None:
    source = INPUTS / "transformer_block.onnx"
    out = tmp_path / "out.onnx"
    result = optimize(source, Options.of(cost="t4", backend="cuda", end_to_end=False), output=out)
    assert result.verification is not None and not result.verification.failure()
    assert result.cost_after_us <= result.cost_before_us
    written = load_model(out)
    assert not any(node.op.startswith("cuda_") for node in written.nodes)
    kernels = costs().as_run(written)
    assert Counter(node.op for node in kernels.nodes)["cuda_product_add"] == 2
    assert graph_cost_us(written, costs()) == pytest.approx(result.cost_after_us)
    assert len(plan_graph(kernels).steps) < len(plan_graph(load_model(source)).steps)
    printed = io.StringIO()
    print_report(result, Console(file=printed, width=120), details=True)
    assert "cuda_product_add" in printed.getvalue()


class _LaunchTimer(FakeTimer):
    """A launch takes 10 µs, whatever it computes; events take some, too."""

    def time_us(self, before: Any, work: Any) -> float:
        self.library.launched = 0
        work()
        return 1.0 + 10.0 * self.library.launched


def _approximated() -> Graph:
    """Two products of one input, added: one product, which cuBLASLt applies its own GELU to."""
    nodes = [
        Node("matmul", ("x", "v"), ("a",)),
        Node("matmul", ("x", "w"), ("b",)),
        Node("add", ("a", "b"), ("c",)),
        Node("gelu", ("c",), ("y",), {"approximate": "tanh"}),
    ]
    weights = {"v": weight(64, 64), "w": weight(64, 64, seed=1)}
    return build_graph("approximated", {"x": f32(64, 64)}, weights, nodes, ["y"])


def test_kernels_are_measured_and_race_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On the double, where every launch takes the same time: fewer are cheaper."""
    monkeypatch.setattr(device_module, "Timer", _LaunchTimer)
    monkeypatch.setattr(device_module, "record_launches", FakeRecording)
    monkeypatch.setattr(graph_times, "record_launches", FakeRecording)
    monkeypatch.setattr(graph_times, "_TURN_US", 60.0)  # the double computes whatever is run
    monkeypatch.setattr(graph_times, "_WARM_UP_US", 60.0)
    monkeypatch.setattr(graph_times, "_ROUNDS", 3)
    library: Any = CudaDouble()
    few = Settings(warm_up_us=0.0, window=2, fewest=2, most=2, fewest_batch=2, most_batch=2)
    device = CudaDevice(library, settings=few)
    monkeypatch.setattr(cost_cuda, "open_device", lambda *_: device)
    given = []
    run_heat = device.heat

    def heat(graphs: Any, inputs: Any, seed: int) -> Any:
        given.append([graph.count_ops() for graph in graphs])
        return run_heat(graphs, inputs, seed)

    monkeypatch.setattr(device, "heat", heat)
    options = Options.of(cost="cuda", backend="cuda", cost_cache=tmp_path / "costs.duckdb")
    graph = _approximated()
    result = optimize(graph, options)
    assert result.cost_basis == "measured"
    assert result.kernels_us["cuda_product"][1] > 0
    assert result.cost_after_us < result.cost_before_us
    before, after = given[0][:2]
    assert before == costs().as_run(graph).count_ops()
    assert after == {"cuda_product": 1}
    assert result.race is not None, result.notes
    # two launches, and one: our own product applies the GELU, too
    assert result.race.final.speedup == pytest.approx(2.0, rel=0.02)
    assert library.memory.live == 0
