"""Between plans and the driver: PyCUDA, modules, candidates, recorded launches, all stood in for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from relational_tensat.base.errors import InputError, MissingDependencyError
from relational_tensat.gpu.calls import Launch, Pooling, Ref
from relational_tensat.gpu.catalogue import signature_of
from relational_tensat.gpu.cuda import cuda_library as library_module
from relational_tensat.gpu.cuda import modules as modules_module
from relational_tensat.gpu.cuda.cuda_library import CudaLibrary, Timer
from relational_tensat.gpu.cuda.gpu import open_gpu, record_launches
from relational_tensat.gpu.cuda.modules import Modules, packed
from relational_tensat.gpu.nvrtc import Compiled
from relational_tensat.gpu.plan import plan_graph
from tests.gpu.fake_cuda import fake_gpu
from tests.gpu.runs import one_node
from tests.graphs import f32


class PycudaError(Exception):
    """Stands for ``pycuda.driver.Error``."""


@pytest.fixture
def fake_pycuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """PyCUDA with one GPU."""
    device = SimpleNamespace(
        compute_capability=lambda: (9, 0),
        name=lambda: "NVIDIA H200",
        get_attribute=lambda attribute: 60 << 20,
    )
    driver = SimpleNamespace(
        init=lambda: None,
        Error=PycudaError,
        Device=SimpleNamespace(count=lambda: 1),
        Stream=lambda: SimpleNamespace(handle=7),
        device_attribute=SimpleNamespace(L2_CACHE_SIZE="l2"),
        get_driver_version=lambda: 13000,
    )
    package = SimpleNamespace(VERSION_TEXT="2026.1", driver=driver)
    monkeypatch.setitem(sys.modules, "pycuda", package)
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
    monkeypatch.setitem(sys.modules, "pycuda.autoprimaryctx", SimpleNamespace(device=device))
    open_gpu.cache_clear()
    yield driver
    open_gpu.cache_clear()


def test_the_gpu_is_described(fake_pycuda: Any) -> None:
    gpu = open_gpu()
    assert (gpu.name, gpu.arch, gpu.l2_bytes) == ("NVIDIA H200", "sm_90", 60 << 20)
    assert gpu.driver_version
    assert open_gpu() is gpu


def _fail(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def test_without_a_driver_or_gpu_one_line_says_so(
    fake_pycuda: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_pycuda.init = _fail(PycudaError("cuInit failed: no CUDA-capable device is detected"))
    with pytest.raises(MissingDependencyError, match=r"^no NVIDIA GPU can be used: cuInit failed"):
        open_gpu()
    fake_pycuda.init = lambda: None
    fake_pycuda.Device.count = lambda: 0
    with pytest.raises(MissingDependencyError, match="there is no NVIDIA GPU in this machine"):
        open_gpu()
    monkeypatch.setitem(sys.modules, "pycuda.driver", None)
    with pytest.raises(
        MissingDependencyError, match=r"needs NVIDIA's driver, beside PyCUDA 2026.1"
    ):
        open_gpu()


def test_arguments_are_packed_in_the_order_of_the_declaration() -> None:
    launch = Launch(
        "unary<float>", (1, 1, 1), (256, 1, 1),
        {"n": 3, "low": 0.5, "high": 1.0, "op": 12, "src": Ref("x", 8), "dst": Ref("y"),
         "src_strides": (0, 0, 0, 0, 1), "sizes": (1, 1, 1, 1, 3)},
    )  # fmt: skip
    addresses = {"x": 1000, "y": 2000}
    signature = signature_of(launch.kernel)
    values = packed(signature, launch, lambda ref: addresses[ref.buffer] + ref.offset_bytes)
    assert values == (2000, 1008, 12, 3, 0.5, 1.0, 1, 1, 1, 1, 3, 0, 0, 0, 0, 1)
    wrong = Launch(launch.kernel, launch.grid, launch.block, {**launch.arguments, "m": 1})
    with pytest.raises(InputError, match=r"unary<float>: the arguments do not fit .*: m"):
        packed(signature, wrong, lambda ref: 0)


def _gpu(log: list[Any]) -> Any:
    """Return a GPU whose modules write launches down."""

    def function(name: str) -> Any:
        def call(grid: Any, block: Any, stream: Any, *values: Any) -> None:
            log.append((name, grid, block, values))

        return SimpleNamespace(prepare=lambda types: None, prepared_async_call=call)

    class Memory(int):
        def free(self) -> None:
            log.append(("free", int(self)))

    return fake_gpu(
        module_from_buffer=lambda cubin: SimpleNamespace(get_function=function),
        mem_alloc=lambda nbytes: Memory(4096),
        MemoryError=MemoryError,
    )


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_unit(unit: str, arch: str) -> Compiled:
        names = {"unary<float>": "_unary", "pool<float>": "_pool"}
        return Compiled(unit, arch, b"", names)

    monkeypatch.setattr(modules_module, "cached_unit", compile_unit)
    monkeypatch.setattr(library_module, "open_cublaslt", lambda gpu, modules: None)
    monkeypatch.setattr(library_module, "open_cudnn", lambda gpu, modules: None)


def test_kernels_are_launched_by_the_name_that_nvrtc_gave(compiled: None) -> None:
    log: list[Any] = []
    (step,) = plan_graph(one_node("relu", f32(4))).steps
    assert isinstance(step.call, Launch)
    bound = Modules(_gpu(log)).bind(step.call, lambda ref: 99)
    bound.start(0)
    ((name, grid, block, values),) = log
    assert (name, grid, block) == ("_unary", (1, 1, 1), (256, 1, 1))
    assert values[:4] == (99, 99, 0, 4)


def _pooling() -> Pooling:
    graph = one_node("max_pool", f32(1, 2, 4, 4), kernel=(2, 2), stride=(2, 2), pad="valid")
    (step,) = plan_graph(graph).steps
    assert isinstance(step.call, Pooling)
    return step.call


def test_what_a_library_refuses_runs_on_our_kernels(
    compiled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[Any] = []
    refused: list[str] = []

    class Refusing:
        version = "9"

        def bind_pool(self, call: Pooling, resolve: Any) -> Any:
            def start(workspace: int) -> None:
                refused.append("started")
                raise InputError("cudnnPoolingForward: CUDNN_STATUS_NOT_SUPPORTED")

            return SimpleNamespace(
                start=start, workspace_bytes=64, close=lambda: refused.append("closed")
            )

    monkeypatch.setattr(library_module, "open_cudnn", lambda gpu, modules: Refusing())
    library = CudaLibrary(_gpu(log))
    choice, bound = library.choose(_pooling(), lambda ref: 8)
    assert (choice, bound.implementation) == (1, "kernels")
    assert refused == ["started", "closed"]
    assert library.bind_again(_pooling(), lambda ref: 16, choice).implementation == "kernels"
    assert [entry[0] for entry in log] == ["free", "_pool"]  # its workspace, then our launch


def test_a_call_runs_by_the_fastest_way_of_a_library(
    compiled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    asked: list[int] = []

    class TwoWays:
        version = "9"

        def bind(self, call: Any, resolve: Any, *, fused: bool) -> Any:
            name = "fused" if fused else "apart"
            return SimpleNamespace(
                implementation=name, workspace_bytes=0, start=lambda _: None,
                close=lambda: closed.append(name),
            )  # fmt: skip

    def quickest(gpu: Any, starts: Any) -> int:
        asked.append(len(starts))
        return 1

    monkeypatch.setattr(library_module, "open_cublaslt", lambda gpu, modules: TwoWays())
    monkeypatch.setattr(library_module, "quickest", quickest)
    library = CudaLibrary(_gpu([]))
    (step,) = plan_graph(one_node("matmul", f32(8, 8), f32(8, 8), act="relu")).steps
    for address in (256, 512):  # elsewhere, it is not asked again
        number, bound = library.choose(step.call, lambda ref, address=address: address)
        assert (number, bound.implementation) == (1, "apart")
    assert (closed, asked) == (["fused"], [2])


def test_versions_name_what_is_missing(compiled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_module, "nvrtc_version", lambda: "13.0")
    versions = CudaLibrary(_gpu([])).versions()
    assert (versions["cublasLt"], versions["cudnn"], versions["nvrtc"]) == ("none", "none", "13.0")


def test_memory_that_is_not_there_is_reported_in_one_line(compiled: None) -> None:
    gpu = _gpu([])

    def full(nbytes: int) -> None:
        raise MemoryError("cuMemAlloc failed: out of memory")

    gpu.driver.mem_alloc = full
    with pytest.raises(InputError, match="the GPU has no 1,000 bytes left: cuMemAlloc failed"):
        CudaLibrary(gpu).allocate(1000)


def test_a_kernel_that_failed_is_reported_in_one_line(compiled: None) -> None:
    gpu = _gpu([])
    gpu.stream.synchronize = _fail(gpu.driver.Error("cuStreamSynchronize failed: illegal address"))
    with pytest.raises(InputError, match=r"^the GPU: cuStreamSynchronize failed: illegal address"):
        CudaLibrary(gpu).synchronize()


class FakeBindings:
    """Stands for ``cuda.bindings.driver``."""

    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL="thread local")

    def __init__(self, **failing: int) -> None:
        self.log: list[str] = []
        self.failing = failing

    def CUstream(self, handle: int) -> int:  # noqa: N802 - the driver's name
        return handle

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> tuple[Any, ...]:
            self.log.append(name)
            code = self.failing.get(name, 0)
            status = SimpleNamespace(value=code, name=f"CUDA_ERROR_{code}")
            makes = name in ("cuStreamEndCapture", "cuGraphInstantiate")
            return (status, "made") if makes else (status,)

        return call


def _install(monkeypatch: pytest.MonkeyPatch, bindings: Any) -> None:
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=bindings))


def test_launches_are_recorded_once_and_started_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bindings = FakeBindings()
    _install(monkeypatch, bindings)
    recorded = record_launches(fake_gpu(), lambda: bindings.log.append("launch"))
    recorded.start()
    recorded.close()
    recorded.close()
    assert bindings.log == [
        "cuStreamBeginCapture", "launch", "cuStreamEndCapture", "cuGraphInstantiate",
        "cuGraphDestroy", "cuGraphLaunch", "cuGraphExecDestroy",
    ]  # fmt: skip


def test_a_capture_that_fails_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    bindings = FakeBindings()
    _install(monkeypatch, bindings)
    with pytest.raises(InputError, match="refused"):
        record_launches(fake_gpu(), _fail(InputError("refused")))
    assert bindings.log == ["cuStreamBeginCapture", "cuStreamEndCapture"]
    _install(monkeypatch, FakeBindings(cuGraphInstantiate=700))
    with pytest.raises(InputError, match="cuGraphInstantiate: CUDA_ERROR_700"):
        record_launches(fake_gpu(), lambda: None)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(MissingDependencyError, match="CUDA graphs need cuda-bindings"):
        record_launches(fake_gpu(), lambda: None)


def test_time_is_what_passes_between_two_events() -> None:
    log: list[str] = []

    class Event:
        def record(self, stream: Any) -> None:
            log.append("event")

        def synchronize(self) -> None:
            log.append("wait")

        def time_till(self, other: Any) -> float:
            return 0.25

    gpu = fake_gpu(
        Event=Event,
        memset_d32=lambda *_: None,
        memset_d32_async=lambda *_: log.append("flush"),
    )
    bound = SimpleNamespace(start=lambda workspace: log.append("product"))
    library: Any = SimpleNamespace(gpu=gpu, allocate=lambda nbytes: 256, bind=lambda *_: bound)
    timer = Timer(library)
    assert timer.time_us(timer.flush_cache, lambda: log.append("work")) == 250.0
    assert log == ["flush", "event", "work", "event", "wait"]
    assert timer.reference_us() == pytest.approx(250.0 / 4)
    assert log.count("product") == 5  # one that is not timed, four that are


def test_data_goes_to_the_device_and_back(compiled: None) -> None:
    gpu = _gpu([])
    stored: dict[int, bytes] = {}

    def to_device(address: int, data: Any) -> None:
        stored[address] = data.tobytes()

    def to_host(data: Any, address: int) -> None:
        data[:] = np.frombuffer(stored[address], np.uint8)

    gpu.driver.memcpy_htod, gpu.driver.memcpy_dtoh = to_device, to_host
    library = CudaLibrary(gpu)
    library.write(64, np.arange(8, dtype=np.uint8)[::2])
    np.testing.assert_array_equal(library.read(64, 4), [0, 2, 4, 6])
