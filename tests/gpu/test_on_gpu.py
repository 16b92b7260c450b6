"""On a real GPU: ``pytest -m gpu``. Everywhere else these are skipped, and say why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np
import pytest

from bench.gpu.graphs_on_device import prepare_graphs, time_graphs, verify_on_device
from bench.models import MODELS
from relational_tensat.base.errors import InputError, MissingDependencyError
from relational_tensat.cost.cuda import open_device
from relational_tensat.cost.cuda.protocol import Settings
from relational_tensat.cost.cuda.single import draw
from relational_tensat.cost.cuda.subject import TOLERANCES, norm_error
from relational_tensat.cost.device import TimingSample
from relational_tensat.gpu.cuda import CudaLibrary, open_gpu
from relational_tensat.gpu.cuda.cuda_library import Timer
from relational_tensat.gpu.plan import Executor, plan_graph
from relational_tensat.tensor import Array, Graph
from relational_tensat.verify.fold import fold_weights
from relational_tensat.verify.outputs import compute_outputs
from relational_tensat.verify.random_values import random_inputs
from tests.cost.cuda.test_single import configuration
from tests.gpu.cases import cases, kernel_cases
from tests.gpu.small_models import small_model
from tests.graphs import f32, shared_matmuls

pytestmark = pytest.mark.gpu


@cache
def _obstacle() -> str:
    """Return why there is no GPU to test on, "" where there is one."""
    try:
        open_gpu()
    except MissingDependencyError as error:
        return str(error)
    return ""


@pytest.fixture(params=[True, False], ids=["kernels", "libraries"])
def library(request: pytest.FixtureRequest) -> Iterator[CudaLibrary]:
    if _obstacle():
        pytest.skip(_obstacle())
    yield CudaLibrary(open_gpu(), own_only=request.param)


def _check(
    graph: Graph,
    inputs: Mapping[str, Array],
    library: CudaLibrary,
    math: str = "fp32",
    scale: float = 1.0,
) -> None:
    weights = {name: w.data for name, w in graph.weights.items() if w.data is not None}
    exact = compute_outputs(graph, inputs, weights)
    with Executor(plan_graph(graph, math), library) as executor:
        outputs = executor.run(inputs)
        used = executor.implementations()
    for kind, actual, want in zip(graph.output_types(), outputs, exact, strict=True):
        if not kind.is_float:
            np.testing.assert_array_equal(actual, want)
            continue
        name = "tf32" if math == "tf32" and kind.dtype == "float32" else kind.dtype
        error = norm_error(np.asarray(actual, np.float64), want)
        assert error <= scale * TOLERANCES[name], f"{graph.name} on {used}: {error:.1e}"


@pytest.mark.parametrize("math", ["fp32", "tf32"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_every_operator_and_kernel(library: CudaLibrary, dtype: str, math: str) -> None:
    if math == "tf32" and dtype != "float32":
        pytest.skip("tf32 is a way to multiply float32")
    wrong = []
    for graph in (*cases(dtype), *kernel_cases(dtype)):
        try:
            _check(graph, draw(graph, seed=0), library, math)
        except AssertionError as error:
            wrong.append(str(error).splitlines()[0])
        except InputError as error:  # after a fault of the device, nothing runs any more
            wrong.append(f"{graph.name}: {error}")
            break
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", MODELS)
def test_models(library: CudaLibrary, name: str) -> None:
    graph = fold_weights(small_model(name))
    _check(graph, random_inputs(graph, seed=0), library, scale=10.0)


def test_graphs_are_recorded_and_timed(library: CudaLibrary) -> None:
    prepared = prepare_graphs(shared_matmuls(), [shared_matmuls()])
    verify_on_device(library, prepared, "fp32")
    settings = Settings(short_us=0.0, window=5, fewest=10, most=10, modes=("warm",), tolerance=1.0)
    times = time_graphs(library, Timer(library), prepared.graphs, prepared.inputs, "fp32", settings)
    assert len(times) == 2


@pytest.mark.parametrize("math", ["fp32", "tf32"])
def test_the_device_measures(math: str) -> None:
    if _obstacle():
        pytest.skip(_obstacle())
    configurations = [
        configuration("matmul", f32(64, 512), f32(512, 512), f32(512), act="relu"),
        configuration("conv", f32(1, 64, 28, 28), f32(64, 64, 3, 3), stride=(1, 1), pad="same"),
        configuration("add", f32(64, 512), f32(64, 512)),
        configuration("reshape", f32(64, 512), shape=(512, 64)),
    ]
    results = dict(open_device(math).measure(configurations))
    assert all(isinstance(result, TimingSample) for result in results.values()), results
