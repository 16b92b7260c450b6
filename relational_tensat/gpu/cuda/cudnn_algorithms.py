"""Which of its algorithms cuDNN runs a convolution by: the fastest, as its own search times them.

That is what TASO measures by, too (``cudnnFindConvolutionForwardAlgorithmEx``). What cuDNN's heuristic
names first is often far from it: on an H100, a convolution of 512 by 512 filters of 3 x 3 on 7 x 7
elements took 162 µs so, of which reading the filters is 3.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.gpu.calls import Convolution
from relational_tensat.gpu.cuda.cudnn_calls import Descriptors
from relational_tensat.gpu.cuda.cudnn_types import (
    ALGORITHM_COUNT,
    ALGORITHM_PRECOMPUTED,
    AlgorithmPerformance,
)
from relational_tensat.gpu.cuda.gpu import Gpu
from relational_tensat.gpu.cuda.shared import SharedLibrary
from relational_tensat.gpu.elements import item_bytes

#: Algorithms that need more are passed over.
_MOST_WORKSPACE_BYTES = 1 << 30


class Algorithms:
    """What has been found out about convolutions, wherever their operands lie.

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
            InputError: there is none.
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
        """Return algorithms in the order in which cuDNN's heuristic names them."""
        performances, count = (AlgorithmPerformance * ALGORITHM_COUNT)(), ctypes.c_int()
        self._library.call(
            "cudnnGetConvolutionForwardAlgorithm_v7", self._handle, descriptors.x, descriptors.w,
            descriptors.convolution, descriptors.y, ALGORITHM_COUNT, ctypes.byref(count), performances,
        )  # fmt: skip
        return performances[: count.value]


def _operand_bytes(call: Convolution) -> tuple[int, int, int]:
    """Return the bytes of image, filters and result."""
    windows, groups = call.windows, call.groups
    x = call.batch * groups * call.channels * math.prod(windows.sizes)
    w = groups * call.filters * call.channels * math.prod(windows.kernel)
    y = call.batch * groups * call.filters * math.prod(windows.out)
    return x * item_bytes(call.dtype), w * item_bytes(call.dtype), y * item_bytes(call.dtype)
