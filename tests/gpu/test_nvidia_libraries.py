"""cuBLASLt and cuDNN are called with what their headers declare, and say in one line why not."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.gpu.calls import Convolution, Pooling, ProductCall, Ref
from relational_tensat.gpu.cuda import gpu as gpu_module
from relational_tensat.gpu.cuda.cublaslt import CublasLt, _Heuristic
from relational_tensat.gpu.cuda.cudnn import Cudnn
from relational_tensat.gpu.cuda.cudnn_calls import AlgorithmPerformance
from relational_tensat.gpu.cuda.modules import SharedLibrary
from relational_tensat.gpu.plan import plan_graph
from relational_tensat.rules.backends.backend import load_backend
from tests.cost.cuda.double import FakeRecording
from tests.gpu.fake_cuda import FakeHandle, FakeModules, fake_gpu
from tests.gpu.runs import one_node
from tests.graphs import f32

_ADDRESSES = {"a": 0x10000, "b": 0x20000, "c": 0x30000, "bias": 0x40000, "x": 0x50000,
              "w": 0x60000, "y": 0x70000, "addend": 0x80000}  # fmt: skip


def _resolve(ref: Ref) -> int:
    return _ADDRESSES[ref.buffer] + ref.offset_bytes


def _call(graph: Any) -> Any:
    (step,) = plan_graph(graph).steps
    return step.call


def test_structures_have_the_sizes_of_the_headers() -> None:
    assert ctypes.sizeof(_Heuristic) == 64 + 8 + 4 + 4 + 16
    assert ctypes.sizeof(AlgorithmPerformance) == 48
    assert AlgorithmPerformance.memory.offset == 16


def _heuristic(*arguments: Any) -> int:
    results, count = arguments[-2], arguments[-1]._obj
    results[0].workspace_bytes, results[0].state, count.value = 4096, 0, 1
    return 0


def _blas(**behaviours: Any) -> tuple[CublasLt, FakeHandle, FakeModules]:
    behaviours = {
        "cublasLtGetVersion": lambda: 130100,
        "cublasLtGetStatusName": lambda status: b"CUBLAS_STATUS_NOT_SUPPORTED",
        "cublasLtMatmulAlgoGetHeuristic": _heuristic,
        **behaviours,
    }
    handle, modules = FakeHandle(**behaviours), FakeModules()
    return CublasLt(fake_gpu(), modules, handle), handle, modules  # type: ignore[arg-type]


def _product(act: str = "none", bias: tuple[int, ...] | None = None) -> ProductCall:
    kinds = [f32(3, 4), f32(4, 5)] + ([] if bias is None else [f32(*bias)])
    call: ProductCall = _call(one_node("matmul", *kinds, act=act))
    refs: dict[str, Any] = {"a": Ref("a"), "b": Ref("b"), "c": Ref("c")}
    return replace(call, **refs, bias=None if bias is None else Ref("bias"))


def test_copies_of_a_product_ask_once_and_views_say_how_they_lie() -> None:
    blas, handle, _ = _blas()
    product = _product()
    for offset_bytes in (0, 256):
        blas.bind(replace(product, a=Ref("a", offset_bytes)), _resolve, fused=True)
    assert len(handle.called("cublasLtMatmulAlgoGetHeuristic")) == 1
    blas.bind(replace(product, a=Ref("a", 16)), _resolve, fused=True)
    told = [arguments[1:3] for arguments in handle.called("cublasLtMatmulPreferenceSetAttribute")]
    alignments = [(number, value._obj.value) for number, value in told if number > 1]
    assert alignments[:4] == [(5, 256), (6, 256), (7, 256), (8, 256)]
    assert alignments[4:] == [(5, 256), (6, 16), (7, 256), (8, 256)]


def test_a_product_runs_by_the_algorithm_that_is_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_module, "record_launches", FakeRecording)

    def four(*arguments: Any) -> int:
        results, count = arguments[-2], arguments[-1]._obj
        for place in range(4):
            results[place].workspace_bytes, results[place].state = 1000 * place, 0
        count.value = 4
        return 0

    now_ms = [0.0]

    class Event:
        def record(self, stream: Any) -> None:
            self.at_ms = now_ms[0]

        def synchronize(self) -> None:
            pass

        def time_till(self, other: Event) -> float:
            return other.at_ms - self.at_ms

    def run(*arguments: Any) -> int:
        algorithm, workspace_bytes = arguments[-4]._obj, arguments[-2]
        assert algorithm.workspace_bytes == workspace_bytes
        now_ms[0] += {0: 3.0, 1000: 2.01, 2000: 0.0, 3000: 2.0}[workspace_bytes]
        return 15 if workspace_bytes == 2000 else 0  # it is refused

    blas, _, _ = _blas(cublasLtMatmulAlgoGetHeuristic=four, cublasLtMatmul=run)
    blas._gpu.driver.Event = Event
    blas._gpu.driver.mem_alloc = lambda nbytes: _Memory(0x90000)
    alive = _Memory.alive
    assert blas.bind(_product(), _resolve, fused=True).workspace_bytes == 1000
    assert _Memory.alive == alive


def test_a_product_is_handed_over_column_by_column() -> None:
    blas, handle, modules = _blas()
    bound = blas.bind(_product("relu", (5,)), _resolve, fused=True)
    assert (bound.implementation, bound.workspace_bytes) == ("cublasLt", 4096)
    shapes = [arguments[2:] for arguments in handle.called("cublasLtMatrixLayoutCreate")]
    assert shapes == [(5, 4, 5), (4, 3, 4), (5, 3, 5)]
    attributes = {
        arguments[1]: arguments[2]._obj.value
        for arguments in handle.called("cublasLtMatmulDescSetAttribute")
    }
    assert attributes == {7: 2 | 4, 8: _ADDRESSES["bias"], 26: 0}
    bound.start(0x9000)
    (started,) = handle.called("cublasLtMatmul")
    assert (started[3], started[5], started[8], started[10]) == (0x20000, 0x10000, 0x30000, 0x30000)
    assert started[-3:] == (0x9000, 4096, 77)
    assert modules.started == []
    bound.close()
    assert handle.alive == 1  # the library's own handle


def test_what_else_cublas_does_on_its_way_is_asked_for() -> None:
    load_backend("cuda")
    attrs = {"alpha": -0.5, "trans_a": True, "trans_b": True, "act": "gelu_tanh"}
    graph = one_node("cuda_product_add", f32(4, 3), f32(5, 4), f32(3, 5), f32(5), **attrs)
    refs: dict[str, Any] = {name: Ref(name) for name in ("a", "b", "c", "bias", "addend")}
    blas, handle, modules = _blas()
    bound = blas.bind(replace(_call(graph), **refs), _resolve, fused=True)
    assert bound.implementation == "cublasLt"
    shapes = [arguments[2:] for arguments in handle.called("cublasLtMatrixLayoutCreate")]
    assert shapes == [(4, 5, 4), (3, 4, 3), (5, 3, 5)]
    attributes = {
        arguments[1]: arguments[2]._obj.value
        for arguments in handle.called("cublasLtMatmulDescSetAttribute")
    }
    assert attributes == {3: 1, 4: 1, 7: 32 | 4, 8: _ADDRESSES["bias"], 26: 0}
    bound.start(0)
    (started,) = handle.called("cublasLtMatmul")
    assert (started[2]._obj.value, started[7]._obj.value) == (-0.5, 1.0)
    assert (started[8], started[10]) == (_ADDRESSES["addend"], _ADDRESSES["c"])
    assert modules.started == []


def test_an_epilogue_that_cublas_refuses_is_a_launch_of_ours_behind_it() -> None:
    blas, handle, modules = _blas()
    bound = blas.bind(_product("relu", (5,)), _resolve, fused=False)
    assert bound.implementation == "cublasLt+kernels"
    (attribute,) = handle.called("cublasLtMatmulDescSetAttribute")
    assert (attribute[1], attribute[2]._obj.value) == (7, 1)
    bound.start(0)
    assert [kernel for kernel, _ in modules.started] == ["binary<float>"]
    with pytest.raises(InputError, match="leaves nothing"):
        blas.bind(_product(), _resolve, fused=False)


def test_other_epilogues_are_a_launch_of_ours_behind_it() -> None:
    blas, _, modules = _blas()
    bound = blas.bind(_product("tanh", (5,)), _resolve, fused=True)
    assert bound.implementation == "cublasLt+kernels"
    bound.start(0)
    ((kernel, arguments),) = modules.started
    assert kernel == "binary<float>"
    assert (arguments["dst"], arguments["a"], arguments["b"]) == (0x30000, 0x30000, 0x40000)


@pytest.mark.parametrize(
    ("dtype", "math", "compute", "code"),
    [("float32", "fp32", 68, 0), ("float32", "tf32", 77, 0), ("bfloat16", "tf32", 68, 14)],
)
def test_how_numbers_are_multiplied(dtype: str, math: str, compute: int, code: int) -> None:
    blas, handle, _ = _blas()
    blas.bind(replace(_product(), dtype=dtype, math=math), _resolve, fused=True)
    ((_, kind, scale),) = handle.called("cublasLtMatmulDescCreate")
    assert (kind, scale) == (compute, 0)
    assert {arguments[1] for arguments in handle.called("cublasLtMatrixLayoutCreate")} == {code}


def test_what_cublas_refuses_is_reported_in_one_line() -> None:
    blas, _, _ = _blas(cublasLtMatmulAlgoGetHeuristic=lambda *_: 15)
    with pytest.raises(InputError, match="cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_NOT_SUPP"):
        blas.bind(_product(), _resolve, fused=True)
    blas, handle, _ = _blas(cublasLtMatmulAlgoGetHeuristic=lambda *_: 0)
    with pytest.raises(InputError, match="no algorithm"):
        blas.bind(_product(), _resolve, fused=True)
    assert handle.alive == 1
    two_axes = _call(one_node("matmul", f32(2, 1, 3, 4), f32(1, 6, 4, 5)))
    with pytest.raises(InputError, match="batches of one stride"):
        blas.bind(two_axes, _resolve, fused=True)


def _algorithms(*algorithms: tuple[int, int, int]) -> Any:
    def fill(*arguments: Any) -> int:
        count, results = arguments[-2]._obj, arguments[-1]
        for place, (algorithm, status, memory) in enumerate(algorithms):
            results[place].algorithm = algorithm
            results[place].status = status
            results[place].memory = memory
        count.value = len(algorithms)
        return 0

    return fill


class _Memory(int):
    """Stands for ``pycuda.driver.DeviceAllocation``; counts what was not given back."""

    alive = 0

    def __new__(cls, address: int) -> _Memory:
        cls.alive += 1
        return super().__new__(cls, address)

    def free(self) -> None:
        _Memory.alive -= 1


def _dnn(
    *algorithms: tuple[int, int, int], **behaviours: Any
) -> tuple[Cudnn, FakeHandle, FakeModules]:
    """Return a cuDNN whose search times nothing, unless it is told."""
    behaviours = {
        "cudnnGetVersion": lambda: 92800,
        "cudnnGetErrorString": lambda status: b"CUDNN_STATUS_NOT_SUPPORTED",
        "cudnnFindConvolutionForwardAlgorithmEx": lambda *_: 3000,
        "cudnnGetConvolutionForwardAlgorithm_v7": _algorithms(*(algorithms or ((1, 0, 512),))),
        **behaviours,
    }
    handle, modules = FakeHandle(**behaviours), FakeModules()
    gpu = fake_gpu(mem_alloc=lambda nbytes: _Memory(0x90000), memset_d8=lambda *_: None)
    return Cudnn(gpu, modules, handle), handle, modules  # type: ignore[arg-type]


def _convolution(
    *, act: str = "none", bias: bool = False, size: int = 9, **attrs: Any
) -> Convolution:
    kinds = [f32(2, 4, size, size), f32(6, 2, 3, 3)] + [f32(6)] * bias
    attributes = {"stride": (1, 1), "pad": "same", **attrs}
    call: Convolution = _call(one_node("conv", *kinds, **attributes, act=act))
    refs: dict[str, Any] = {"x": Ref("x"), "w": Ref("w"), "y": Ref("y")}
    return replace(call, **refs, bias=Ref("bias") if bias else None)


def test_a_convolution_with_bias_and_relu_is_one_call() -> None:
    dnn, handle, modules = _dnn((6, 9, 0), (0, 0, 0), (1, 0, 512))
    bound = dnn.bind(_convolution(act="relu", bias=True), _resolve, fused=True)
    assert (bound.implementation, bound.algorithm, bound.workspace_bytes) == ("cudnn", 0, 0)
    ((_, dtype, layout, rank, sizes),) = handle.called("cudnnSetFilterNdDescriptor")
    assert (dtype, layout, rank, list(sizes)) == (0, 0, 4, [6, 2, 3, 3])
    assert handle.called("cudnnSetConvolutionGroupCount")[0][1] == 2
    tensors = [
        (list(arguments[3]), list(arguments[4]))
        for arguments in handle.called("cudnnSetTensorNdDescriptor")
    ]
    assert tensors == [
        ([2, 4, 9, 9], [324, 81, 9, 1]),
        ([2, 6, 9, 9], [486, 81, 9, 1]),
        ([1, 6, 1, 1], [6, 1, 1, 1]),
    ]
    bound.start(0x9000)
    (started,) = handle.called("cudnnConvolutionBiasActivationForward")
    assert (started[3], started[5], started[14], started[17]) == (
        0x50000,
        0x60000,
        0x40000,
        0x70000,
    )
    assert modules.started == []


def test_a_convolution_runs_by_the_algorithm_that_was_fastest() -> None:
    def search(*arguments: Any) -> int:
        return int(_algorithms((7, 0, 2 << 30), (6, 0, 4096), (1, 0, 512))(*arguments[:-2]))

    dnn, handle, _ = _dnn(cudnnFindConvolutionForwardAlgorithmEx=search)
    alive = _Memory.alive
    bound = dnn.bind(_convolution(), _resolve, fused=False)
    assert (bound.algorithm, bound.workspace_bytes) == (6, 4096)  # 7 needs too much
    assert _Memory.alive == alive
    other = replace(_convolution(), x=Ref("x", 512))
    assert dnn.bind(other, _resolve, fused=False).algorithm == 6
    assert len(handle.called("cudnnFindConvolutionForwardAlgorithmEx")) == 1
    assert handle.called("cudnnGetConvolutionForwardAlgorithm_v7") == []


@pytest.mark.parametrize(("act", "algorithm"), [("relu", 0), ("none", 1)])
def test_an_addend_is_part_of_the_call(act: str, algorithm: int) -> None:
    dnn, handle, modules = _dnn((0, 0, 0), (1, 0, 512))
    call = replace(_convolution(act=act, bias=True), addend=Ref("addend"))
    bound = dnn.bind(call, _resolve, fused=True)
    assert (bound.implementation, bound.algorithm) == ("cudnn", algorithm)
    bound.start(0x9000)
    (started,) = handle.called("cudnnConvolutionBiasActivationForward")
    assert (started[1]._obj.value, started[10]._obj.value) == (1.0, 1.0)
    assert (started[12], started[14], started[17]) == (
        _ADDRESSES["addend"],
        _ADDRESSES["bias"],
        _ADDRESSES["y"],
    )
    assert modules.started == []
    with pytest.raises(InputError, match="added by cuDNN, or by our own"):
        dnn.bind(call, _resolve, fused=False)


def test_relu_without_bias_adds_zeros() -> None:
    dnn, handle, _ = _dnn()
    dnn.bind(_convolution(act="relu"), _resolve, fused=True).start(0)
    assert handle.called("cudnnConvolutionBiasActivationForward")[0][14] == 0x90000


def test_bias_alone_takes_the_algorithm_that_has_it() -> None:
    dnn, _, _ = _dnn((0, 0, 0), (1, 0, 512))
    bound = dnn.bind(_convolution(bias=True), _resolve, fused=True)
    assert (bound.algorithm, bound.workspace_bytes) == (1, 512)


def test_what_is_not_fused_is_a_launch_behind_it() -> None:
    dnn, handle, modules = _dnn()
    bound = dnn.bind(_convolution(act="tanh", bias=True), _resolve, fused=False)
    bound.start(0x9000)
    assert bound.implementation == "cudnn+kernels"
    assert len(handle.called("cudnnConvolutionForward")) == 1
    bound.close()
    assert handle.alive == 1  # the library's own handle
    assert [kernel for kernel, _ in modules.started] == ["binary<float>"]
    with pytest.raises(InputError, match="cuDNN fuses relu, or a bias, or both"):
        dnn.bind(_convolution(act="tanh", bias=True), _resolve, fused=True)


def test_uneven_padding_is_written_out_into_the_workspace() -> None:
    dnn, handle, modules = _dnn()
    call = _convolution(size=8, stride=(2, 2))
    bound = dnn.bind(call, _resolve, fused=False)
    padded = 2 * 4 * 9 * 9 * 4
    assert bound.workspace_bytes == -(-padded // 256) * 256 + 512
    bound.start(0x90000)
    bound.start(0x90000)
    assert [
        (kernel, arguments["src"], arguments["dst"]) for kernel, arguments in modules.started
    ] == [("pad<u32>", 0x50000, 0x90000)] * 2
    started = handle.called("cudnnConvolutionForward")[0]
    assert (started[3], started[8], started[9]) == (0x90000, 0x90000 + bound.padded_bytes, 512)


def test_convolutions_over_one_dimension_are_described_with_two() -> None:
    dnn, handle, _ = _dnn()
    call = _call(one_node("conv", f32(1, 4, 9), f32(6, 4, 3), stride=(1,), pad="same"))
    call = replace(call, x=Ref("x"), w=Ref("w"), y=Ref("y"))
    dnn.bind(call, _resolve, fused=False)
    ((_, _, _, rank, sizes),) = handle.called("cudnnSetFilterNdDescriptor")
    assert (rank, list(sizes)) == (4, [6, 4, 1, 3])
    ((_, spatial, pads, strides, dilations, mode, compute),) = handle.called(
        "cudnnSetConvolutionNdDescriptor"
    )
    assert (spatial, list(pads), list(strides), list(dilations)) == (2, [0, 1], [1, 1], [1, 1])
    assert (mode, compute) == (1, 0)


def test_pools() -> None:
    dnn, handle, _ = _dnn()
    attrs: dict[str, Any] = {"kernel": (3, 3), "stride": (2, 2)}
    call: Pooling = _call(one_node("avg_pool", f32(1, 2, 9, 9), **attrs, pad=(1, 1, 1, 1)))
    call = replace(call, x=Ref("x"), y=Ref("y"))
    dnn.bind_pool(call, _resolve).start(0)
    ((_, mode, nan, rank, window, pads, strides),) = handle.called("cudnnSetPoolingNdDescriptor")
    assert (mode, nan, rank) == (2, 1, 2)
    assert (list(window), list(pads), list(strides)) == ([3, 3], [1, 1], [2, 2])
    assert len(handle.called("cudnnPoolingForward")) == 1
    with pytest.raises(InputError, match="no such pool"):
        dnn.bind_pool(replace(call, act="relu"), _resolve)


def test_no_algorithm_is_reported_in_one_line() -> None:
    dnn, _, _ = _dnn((0, 9, 0), (7, 0, 1 << 40))
    with pytest.raises(InputError, match="cuDNN has no algorithm for this convolution"):
        dnn.bind(_convolution(), _resolve, fused=False)


def test_a_failed_call_names_function_and_status() -> None:
    library = SharedLibrary(
        FakeHandle(f=lambda *_: 3), {"f": []}, lambda status: f"status {status}"
    )
    with pytest.raises(InputError, match=r"^f: status 3$"):
        library.call("f")
