"""Convolutions and pools through cuDNN's functions of fixed operations.

The algorithm is the fastest that fits into the workspace (``cudnn_algorithms``): in a process the same one
whenever the configuration is the same, on its own or in a graph. Addend, bias and relu are fused where
cuDNN does so; what is left is one launch of ours.
"""

from __future__ import annotations

import ctypes
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.gpu.calls import Convolution, Launch, Pooling, Triple
from relational_tensat.gpu.cuda.cudnn_algorithms import Algorithms
from relational_tensat.gpu.cuda.cudnn_calls import (
    NAME,
    WORKSPACE,
    BoundConvolution,
    BoundPad,
    BoundPool,
    Descriptors,
)
from relational_tensat.gpu.cuda.cudnn_types import (
    COMPUTE_FLOAT,
    CROSS_CORRELATION,
    DTYPES,
    FUNCTIONS,
    IDENTITY,
    MATH,
    NCHW,
    POOLING_MODES,
    PROPAGATE_NAN,
    RELU,
)
from relational_tensat.gpu.cuda.gpu import Gpu
from relational_tensat.gpu.cuda.modules import Modules
from relational_tensat.gpu.cuda.shared import Objects, SharedLibrary, find_library, int_array
from relational_tensat.gpu.elements import item_bytes
from relational_tensat.gpu.library import Resolve
from relational_tensat.gpu.memory import aligned
from relational_tensat.gpu.routing import (
    convolution_epilogue,
    cudnn_fuses,
    cudnn_takes_pool,
    even_padding,
    padded_bytes,
    with_padded_operand,
)

#: Zeros that stand for a bias: of as many filters as a layer commonly has.
_ZERO_BYTES = 1 << 16


class Cudnn:
    """A handle of the library.

    Args:
        handle: what ``ctypes.CDLL`` returns.
    """

    def __init__(self, gpu: Gpu, modules: Modules, handle: Any) -> None:
        handle.cudnnGetErrorString.restype = ctypes.c_char_p
        handle.cudnnGetVersion.restype = ctypes.c_size_t
        self.library = SharedLibrary(
            handle, FUNCTIONS, lambda status: handle.cudnnGetErrorString(status).decode()
        )
        self.version = str(handle.cudnnGetVersion())
        self._gpu = gpu
        self._modules = modules
        self._handle = self.library.create("cudnnCreate")
        self.library.call("cudnnSetStream", self._handle, gpu.stream.handle)
        self._zeros: Any = None
        self._zero_bytes = 0
        self._kept: list[Any] = []
        self._algorithms = Algorithms(gpu, self.library, self._handle)

    def bind(self, call: Convolution, resolve: Resolve, *, fused: bool) -> BoundConvolution:
        """Prepare a convolution.

        Args:
            fused: whether cuDNN adds addend and bias and applies relu; it has no other activation.

        Raises:
            InputError: cuDNN does not have it.
        """
        if fused and not cudnn_fuses(call):
            raise InputError("cuDNN fuses relu, or a bias, or both")
        if call.addend is not None and not fused:
            raise InputError("an addend is added by cuDNN, or by our own convolution")
        objects = Objects(self.library)
        try:
            return self._bind(call, resolve, objects, fused=fused)
        except InputError:
            objects.close()
            raise

    def _bind(
        self, call: Convolution, resolve: Resolve, objects: Objects, *, fused: bool
    ) -> BoundConvolution:
        pad: Launch | None = None
        bare = call
        if not even_padding(call.windows):
            pad, bare = with_padded_operand(call, WORKSPACE)
        relu = call.act == "relu"
        descriptors = self._descriptors(bare, objects)
        algorithm, needed = self._algorithms.choose(
            bare, descriptors, any_algorithm=relu or not fused
        )
        left = None if fused else convolution_epilogue(call)
        return BoundConvolution(
            library=self.library,
            objects=objects,
            handle=self._handle,
            descriptors=descriptors,
            algorithm=algorithm,
            x=0 if pad is not None else resolve(call.x),
            w=resolve(call.w),
            y=resolve(call.y),
            bias=self._bias(call, resolve) if fused else 0,
            addend=0 if call.addend is None else resolve(call.addend),
            activation=self._activation(call.act, objects) if fused else 0,
            own_bytes=needed,
            pad=None if pad is None else BoundPad(self._modules, pad, resolve),
            padded_bytes=0 if pad is None else aligned(padded_bytes(call)),
            rest=None if left is None else self._modules.bind(left, resolve),
        )

    def bind_pool(self, call: Pooling, resolve: Resolve) -> BoundPool:
        """Prepare a pool.

        Raises:
            InputError: cuDNN does not have it.
        """
        if not cudnn_takes_pool(call):
            raise InputError("cuDNN has no such pool")
        windows = call.windows
        rank = max(call.rank, 2)
        objects = Objects(self.library)
        pool = objects.create("cudnnCreatePoolingDescriptor")
        self.library.call(
            "cudnnSetPoolingNdDescriptor", pool, POOLING_MODES[call.op, call.include_pad],
            PROPAGATE_NAN, rank, _last(windows.kernel, rank), _last(windows.begins, rank),
            _last(windows.stride, rank),
        )  # fmt: skip
        planes = (call.batch, call.channels)
        return BoundPool(
            library=self.library,
            objects=objects,
            handle=self._handle,
            pool=pool,
            x_type=self._tensor(objects, call.dtype, planes, windows.sizes, rank),
            y_type=self._tensor(objects, call.dtype, planes, windows.out, rank),
            x=resolve(call.x),
            y=resolve(call.y),
        )

    def _descriptors(self, call: Convolution, objects: Objects) -> Descriptors:
        windows, rank = call.windows, max(call.rank, 2)
        filters, channels = call.groups * call.filters, call.groups * call.channels
        library = self.library
        weight = objects.create("cudnnCreateFilterDescriptor")
        sizes = (filters, call.channels, *windows.kernel[3 - rank :])
        library.call(
            "cudnnSetFilterNdDescriptor", weight, DTYPES[call.dtype], NCHW, len(sizes),
            int_array(sizes),
        )  # fmt: skip
        convolution = objects.create("cudnnCreateConvolutionDescriptor")
        library.call(
            "cudnnSetConvolutionNdDescriptor", convolution, rank, _last(windows.begins, rank),
            _last(windows.stride, rank), _last(windows.dilation, rank), CROSS_CORRELATION,
            COMPUTE_FLOAT,
        )  # fmt: skip
        library.call("cudnnSetConvolutionGroupCount", convolution, call.groups)
        mode = call.math if call.dtype == "float32" else "half"
        library.call("cudnnSetConvolutionMathType", convolution, MATH[mode])
        return Descriptors(
            x=self._tensor(objects, call.dtype, (call.batch, channels), windows.sizes, rank),
            w=weight,
            y=self._tensor(objects, call.dtype, (call.batch, filters), windows.out, rank),
            bias=self._tensor(objects, call.dtype, (1, filters), (1, 1, 1), rank),
            convolution=convolution,
        )

    def _tensor(
        self, objects: Objects, dtype: str, planes: tuple[int, int], sizes: Triple, rank: int
    ) -> int:
        """Describe a contiguous tensor ``[*planes, *sizes]``."""
        shape = (*planes, *sizes[3 - rank :])
        strides, step = [], 1
        for size in reversed(shape):
            strides.append(step)
            step *= size
        descriptor = objects.create("cudnnCreateTensorDescriptor")
        self.library.call(
            "cudnnSetTensorNdDescriptor", descriptor, DTYPES[dtype], len(shape), int_array(shape),
            int_array(strides[::-1]),
        )  # fmt: skip
        return descriptor

    def _bias(self, call: Convolution, resolve: Resolve) -> int:
        """Return the address of the bias; where there is none, of zeros: cuDNN requires one with relu."""
        if call.bias is not None:
            return resolve(call.bias)
        needed = call.groups * call.filters * item_bytes(call.dtype)
        if self._zeros is None or needed > self._zero_bytes:
            self._zero_bytes = max(needed, _ZERO_BYTES)
            self._kept.append(self._zeros)  # calls that were bound before still read it
            self._zeros = self._gpu.driver.mem_alloc(self._zero_bytes)
            self._gpu.driver.memset_d8(int(self._zeros), 0, self._zero_bytes)
        return int(self._zeros)

    def _activation(self, act: str, objects: Objects) -> int:
        descriptor = objects.create("cudnnCreateActivationDescriptor")
        mode = RELU if act == "relu" else IDENTITY
        self.library.call("cudnnSetActivationDescriptor", descriptor, mode, PROPAGATE_NAN, 0.0)
        return descriptor


def _last(values: Triple, rank: int) -> Any:
    return int_array(values[3 - rank :])


def open_cudnn(gpu: Gpu, modules: Modules) -> Cudnn | None:
    """Return the library, None where it is not installed."""
    handle = find_library(NAME)
    return None if handle is None else Cudnn(gpu, modules, handle)
