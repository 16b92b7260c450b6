"""Convolutions and pools through cuDNN's functions of fixed operations.

The algorithm is the fastest that fits into the workspace, by the times of cuDNN's own search. In a process
it is the same one whenever the configuration is the same, alone or in a graph. TASO measures by that, too
(``cudnnFindConvolutionForwardAlgorithmEx``). The first choice of cuDNN's heuristic is often far from it: on
an H100, a convolution of 512 by 512 filters of 3 x 3 on 7 x 7 elements took 162 µs so, of which reading the
filters is 3. Addend, bias and relu are fused where cuDNN can; the rest is one launch of ours.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.gpu.calls import Convolution, Launch, Pooling, Resolve, Triple
from relational_tensat.gpu.cuda.cudnn_calls import (
    ALGORITHM_COUNT,
    ALGORITHM_PRECOMPUTED,
    COMPUTE_FLOAT,
    CROSS_CORRELATION,
    DTYPES,
    FUNCTIONS,
    IDENTITY,
    MATH,
    NAME,
    NCHW,
    POOLING_MODES,
    PROPAGATE_NAN,
    RELU,
    WORKSPACE,
    AlgorithmPerformance,
    BoundConvolution,
    BoundPad,
    BoundPool,
    Descriptors,
)
from relational_tensat.gpu.cuda.gpu import Gpu
from relational_tensat.gpu.cuda.modules import (
    Modules,
    Objects,
    SharedLibrary,
    find_library,
    int_array,
)
from relational_tensat.gpu.library_calls import (
    convolution_epilogue,
    cudnn_fuses,
    cudnn_takes_pool,
    even_padding,
    padded_bytes,
    with_padded_operand,
)
from relational_tensat.gpu.memory import aligned, item_bytes

#: Algorithms that need more are passed over.
_MOST_WORKSPACE_BYTES = 1 << 30


class Algorithms:
    """The algorithms found for convolutions, at any place of their operands.

    Args:
        handle: cuDNN's.
    """

    def __init__(self, gpu: Gpu, library: SharedLibrary, handle: int) -> None:
        self._gpu = gpu
        self._library = library
        self._handle = handle
        self._known: dict[Convolution, Sequence[AlgorithmPerformance]] = {}

    def choose(
        self, call: Convolution, descriptors: Descriptors, *, any_algorithm: bool
    ) -> tuple[int, int]:
        """Return the fastest algorithm and the bytes that it needs.

        Args:
            any_algorithm: fused with bias alone, cuDNN has the one of precomputed indices only.

        Raises:
            InputError: no algorithm serves.
        """
        key = call.anywhere()
        if key not in self._known:
            self._known[key] = self._timed(call, descriptors) or self._named(descriptors)
        for performance in self._known[key]:
            fits = performance.status == 0 and performance.memory <= _MOST_WORKSPACE_BYTES
            if fits and (any_algorithm or performance.algorithm == ALGORITHM_PRECOMPUTED):
                return performance.algorithm, performance.memory
        raise InputError("cuDNN has no algorithm for this convolution")

    def _timed(self, call: Convolution, descriptors: Descriptors) -> Sequence[AlgorithmPerformance]:
        """Return all algorithms, the fastest first; none where there is no memory to run them in."""
        driver = self._gpu.driver
        blocks: list[Any] = []  # one by one: those that there was memory for are given back
        performances, count = (AlgorithmPerformance * ALGORITHM_COUNT)(), ctypes.c_int()
        try:
            for nbytes in (*_operand_bytes(call), _MOST_WORKSPACE_BYTES):
                blocks += [driver.mem_alloc(nbytes)]
            x, w, y, workspace = map(int, blocks)
            self._library.call(
                "cudnnFindConvolutionForwardAlgorithmEx", self._handle, descriptors.x, x,
                descriptors.w, w, descriptors.convolution, descriptors.y, y, ALGORITHM_COUNT,
                ctypes.byref(count), performances, workspace, _MOST_WORKSPACE_BYTES,
            )  # fmt: skip
        except (driver.Error, InputError):
            return []
        finally:
            for block in blocks:
                block.free()
        return performances[: count.value]

    def _named(self, descriptors: Descriptors) -> Sequence[AlgorithmPerformance]:
        performances, count = (AlgorithmPerformance * ALGORITHM_COUNT)(), ctypes.c_int()
        self._library.call(
            "cudnnGetConvolutionForwardAlgorithm_v7", self._handle, descriptors.x, descriptors.w,
            descriptors.convolution, descriptors.y, ALGORITHM_COUNT, ctypes.byref(count), performances,
        )  # fmt: skip
        return performances[: count.value]


def _operand_bytes(call: Convolution) -> tuple[int, int, int]:
    windows, groups = call.windows, call.groups
    x = call.batch * groups * call.channels * math.prod(windows.sizes)
    w = groups * call.filters * call.channels * math.prod(windows.kernel)
    y = call.batch * groups * call.filters * math.prod(windows.out)
    return x * item_bytes(call.dtype), w * item_bytes(call.dtype), y * item_bytes(call.dtype)


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
        """Return the address of the bias, or of zeros: cuDNN requires a bias with relu."""
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
