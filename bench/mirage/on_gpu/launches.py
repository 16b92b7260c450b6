"""The kernels of a μGraph on the device, by way of Triton and of CUDA."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import torch

from bench.mirage.on_gpu.operators import Placed, apply
from relational_tensat.base.files import write_aside
from relational_tensat.base.folders import user_cache
from relational_tensat.gpu.nvrtc import checked, cuda_driver
from relational_tensat.mugraph.graph.dims import Dims, variables
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph, Operation
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernels.emission import load_triton
from relational_tensat.mugraph.kernels.emit_cuda import CudaKernel, compile_cuda, emit_cuda, headers
from relational_tensat.mugraph.kernels.emit_triton import emit_triton
from relational_tensat.mugraph.kernels.layout_choice import KernelLayouts, chosen_layouts

#: Enqueues a kernel on tensors: its operands, then its results.
Launch = Callable[..., None]
#: The element type that kernels are tried with.
DTYPE = "float16"


def prepare(
    graph: MuGraph, inputs: Mapping[str, Placed], target: str
) -> Callable[[], list[Placed]]:
    """Compile the kernels of a μGraph; return a function that enqueues them all and gives the outputs.

    Results lie in the same memory each time; operators of libraries between kernels are PyTorch's.

    Args:
        graph: its inputs lie as the graph lists their dims.
        inputs: by name.
        target: of ``LAUNCHES``.

    Raises:
        InputError: the target has no words for a kernel, or its compiler refuses it.
        MissingDependencyError: what it needs is not installed.
    """
    dims = kernel_tensors(graph)
    layouts = chosen_layouts(graph, DTYPE, graph.wide)
    own = {k.name: chosen for k, chosen in zip(graph.kernels, layouts.kernels, strict=True)}
    tensors, device = dict(inputs), next(iter(inputs.values())).data.device
    launches: dict[str, Callable[[], None]] = {}
    for kernel in graph.kernels:
        chosen = own[kernel.name]
        for saver in kernel.block.savers:
            lying = chosen.device[saver.output]
            dtype = torch.float32 if saver.is_wide else torch.float16
            data = torch.empty([dim.size for dim in lying], dtype=dtype, device=device)
            tensors[saver.output] = Placed(variables(lying), data)
        launches[kernel.name] = _bound(
            LAUNCHES[target](kernel, dims, graph.wide, chosen), kernel, tensors
        )

    def run() -> list[Placed]:
        for step in graph.steps:
            if isinstance(step, Operation):
                tensors[step.output] = apply(step, tensors, dims[step.output])
            else:
                launches[step.name]()
        return [tensors[name] for name in graph.outputs]

    return run


def _bound(launch: Launch, kernel: Kernel, tensors: Mapping[str, Placed]) -> Callable[[], None]:
    """Return a kernel with its tensors, looked up when it is enqueued: libraries make new ones."""
    return lambda: launch(*(tensors[name].data for name in (*kernel.operands, *kernel.outputs)))


def _triton(
    kernel: Kernel, dims: Mapping[str, Dims], wide: frozenset[str], chosen: KernelLayouts
) -> Launch:
    emitted = emit_triton(kernel, dims, DTYPE, wide, chosen.device)
    function = load_triton(emitted)[emitted.grid]

    def launch(*tensors: Any) -> None:
        function(*tensors, num_warps=emitted.warps)

    return launch


def _cuda(
    kernel: Kernel, dims: Mapping[str, Dims], wide: frozenset[str], chosen: KernelLayouts
) -> Launch:
    emitted = emit_cuda(kernel, dims, DTYPE, wide, chosen)
    major, minor = torch.cuda.get_device_capability()
    cubin = _cubin(emitted, f"sm_{major}{minor}")
    driver = cuda_driver("kernels in CUDA")
    (module,) = checked(driver.cuModuleLoadData(cubin), "cuModuleLoadData")
    (function,) = checked(
        driver.cuModuleGetFunction(module, emitted.name.encode()), "cuModuleGetFunction"
    )
    if emitted.dynamic_bytes:
        most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        checked(
            driver.cuFuncSetAttribute(function, most, emitted.dynamic_bytes), "cuFuncSetAttribute"
        )

    def launch(*tensors: Any) -> None:
        addresses = tuple(tensor.data_ptr() for tensor in tensors)
        kinds = (ctypes.c_void_p,) * len(addresses)
        stream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
        checked(
            driver.cuLaunchKernel(
                function, *emitted.grid, emitted.threads, 1, 1, emitted.dynamic_bytes, stream,
                (addresses, kinds), 0,
            ),
            "cuLaunchKernel",
        )  # fmt: skip

    return launch


def _cubin(emitted: CudaKernel, arch: str) -> bytes:
    """Return a kernel's machine code; what has been compiled is kept, as Triton keeps its own."""
    digest = hashlib.sha256("\0".join((emitted.source, *headers().values(), arch)).encode())
    path = user_cache() / "bench-cubins" / f"{digest.hexdigest()[:32]}.cubin"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_aside(path) as aside:
            (aside / path.name).write_bytes(compile_cuda(emitted, arch).cubin)
    return path.read_bytes()


LAUNCHES: Mapping[
    str, Callable[[Kernel, Mapping[str, Dims], frozenset[str], KernelLayouts], Launch]
] = {"triton": _triton, "cuda": _cuda}
