"""The kernels' own code, run on the CPU, gives what the operators mean."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from relational_tensat.cost.cuda.single import draw
from relational_tensat.cost.cuda.subject import TOLERANCES, norm_error
from relational_tensat.gpu.catalogue import UNITS, instances
from relational_tensat.gpu.library_calls import own_launch
from relational_tensat.gpu.plan import Executor, plan_graph
from relational_tensat.tensor import Graph
from relational_tensat.verify.fold import fold_weights
from relational_tensat.verify.outputs import compute_outputs
from tests.gpu.cases import cases, kernel_cases
from tests.gpu.host_library import HostLibrary, compile_for_host
from tests.gpu.runs import one_node
from tests.gpu.small_models import small_model
from tests.graphs import f32
from tests.tiers import nightly
from tests.with_compilers import needs_cpp

pytestmark = needs_cpp


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return compile_for_host(tmp_path_factory.mktemp("kernels"))


def _check(graph: Graph, library: HostLibrary, math: str = "fp32", scale: float = 1.0) -> None:
    inputs = draw(graph, seed=0)
    weights = {name: w.data for name, w in graph.weights.items() if w.data is not None}
    exact = compute_outputs(graph, inputs, weights)
    with Executor(plan_graph(graph, math), library) as executor:
        outputs = executor.run(inputs)
    assert library.live == 0
    for kind, actual, want in zip(graph.output_types(), outputs, exact, strict=True):
        if not kind.is_float:
            np.testing.assert_array_equal(actual, want)
            continue
        name = "tf32" if math == "tf32" and kind.dtype == "float32" else kind.dtype
        error = norm_error(np.asarray(actual, np.float64), want)
        assert error <= scale * TOLERANCES[name], (graph.name, dict(library.bound), error)


@pytest.mark.parametrize("dtype", ["float32", nightly("float16"), "bfloat16"])
def test_every_operator(compiled: Any, dtype: str) -> None:
    met: Counter[str] = Counter()
    for graph in cases(dtype):
        met[graph.name] += 1
        tensor_cores = graph.name in ("matmul", "conv") and dtype != "float32"
        if not tensor_cores or met[graph.name] == 2:  # slow here: one of each
            _check(graph, HostLibrary(compiled))


@pytest.mark.parametrize("dtype", ["float32", "float16", nightly("bfloat16")])
def test_every_kernel_of_the_target(compiled: Any, dtype: str) -> None:
    for number, graph in enumerate(kernel_cases(dtype)):
        tensor_cores = graph.name.startswith(("cuda_product", "cuda_conv")) and dtype != "float32"
        if not tensor_cores or number % 3 == 0:  # slow here: a third
            _check(graph, HostLibrary(compiled))


def test_products_in_tf32(compiled: Any) -> None:
    kinds = f32(70, 65), f32(65, 40), f32(70, 1)
    _check(one_node("matmul", *kinds, act="tanh"), HostLibrary(compiled), "tf32")
    image = f32(2, 4, 9, 9), f32(6, 2, 3, 3), f32(6)
    conv = one_node("conv", *image, stride=(2, 2), pad="same", act="relu")
    _check(conv, HostLibrary(compiled), "tf32")


def test_all_kernels_of_floats_are_met() -> None:
    """What the cases meet: all kernels but those of sizes that tensors of floats do not have."""
    met = set()
    for dtype in ("float32", "float16", "bfloat16"):
        for math in ("fp32", "tf32"):
            for graph in cases(dtype):
                met |= {own_launch(step.call).kernel for step in plan_graph(graph, math).steps}
    missed = {kernel for unit in UNITS for kernel in instances(unit)} - met
    assert {kernel for kernel in missed if "u" not in kernel.partition("<")[2]} == {
        "gemm_simt<f16>", "gemm_simt<bf16>", "conv_simt<f16>", "conv_simt<bf16>",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["squeezenet", "bert"])
def test_models(compiled: Any, name: str) -> None:
    _check(fold_weights(small_model(name)), HostLibrary(compiled), scale=10.0)
