"""Convolutions and pools of cuDNN with their addresses, ready to be started.

Values and signatures are those of cuDNN's headers (cudnn_graph_v9.h, cudnn_ops_v9.h, cudnn_cnn_v9.h).
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

from relational_tensat.gpu.calls import Launch, Ref, Resolve
from relational_tensat.gpu.cuda.modules import (
    DOUBLE,
    INT,
    OWN,
    POINTER,
    SIZE,
    BoundLaunch,
    Modules,
    Objects,
    SharedLibrary,
)

DTYPES = {"float32": 0, "float16": 2, "bfloat16": 9}
COMPUTE_FLOAT = 0
NCHW = 0
CROSS_CORRELATION = 1
PROPAGATE_NAN = 1
RELU, IDENTITY = 1, 5
#: By how float32 is multiplied; ``half`` is for the 16-bit types.
MATH = {"fp32": 3, "tf32": 0, "half": 1}
#: By operator, and whether padding counts.
POOLING_MODES = {
    ("max_pool", False): 0, ("avg_pool", True): 1, ("avg_pool", False): 2,
}  # fmt: skip
#: How many algorithms there are, and the implicit product of precomputed indices among them.
ALGORITHM_COUNT, ALGORITHM_PRECOMPUTED = 8, 1

FUNCTIONS: dict[str, list[Any]] = {
    "cudnnCreate": [POINTER],
    "cudnnSetStream": [POINTER, POINTER],
    **{
        f"cudnn{verb}{what}Descriptor": [POINTER]
        for verb in ("Create", "Destroy")
        for what in ("Tensor", "Filter", "Convolution", "Pooling", "Activation")
    },
    "cudnnSetTensorNdDescriptor": [POINTER, INT, INT, POINTER, POINTER],
    "cudnnSetFilterNdDescriptor": [POINTER, INT, INT, INT, POINTER],
    "cudnnSetConvolutionNdDescriptor": [POINTER, INT, POINTER, POINTER, POINTER, INT, INT],
    "cudnnSetConvolutionGroupCount": [POINTER, INT],
    "cudnnSetConvolutionMathType": [POINTER, INT],
    "cudnnSetPoolingNdDescriptor": [POINTER, INT, INT, INT, POINTER, POINTER, POINTER],
    "cudnnSetActivationDescriptor": [POINTER, INT, INT, DOUBLE],
    "cudnnGetConvolutionForwardAlgorithm_v7": [POINTER] * 5 + [INT, POINTER, POINTER],
    "cudnnFindConvolutionForwardAlgorithmEx": [POINTER] * 8
    + [INT, POINTER, POINTER, POINTER, SIZE],
    "cudnnConvolutionForward": [POINTER] * 7 + [INT, POINTER, SIZE] + [POINTER] * 3,
    "cudnnConvolutionBiasActivationForward": [POINTER] * 7 + [INT, POINTER, SIZE] + [POINTER] * 8,
    "cudnnPoolingForward": [POINTER] * 8,
}


class AlgorithmPerformance(ctypes.Structure):
    """``cudnnConvolutionFwdAlgoPerf_t``."""

    _fields_ = (
        ("algorithm", ctypes.c_int),
        ("status", ctypes.c_int),
        ("time", ctypes.c_float),
        ("memory", ctypes.c_size_t),
        ("determinism", ctypes.c_int),
        ("math", ctypes.c_int),
        ("reserved", ctypes.c_int * 3),
    )


#: How calls are called in ``implementation``; also the library's name.
NAME = "cudnn"
#: Stands for the workspace, where a padded operand goes.
WORKSPACE = Ref("workspace")


@dataclass(frozen=True, slots=True)
class Descriptors:
    """cuDNN's descriptions of a convolution's operands, result and windows."""

    x: int
    w: int
    y: int
    bias: int
    convolution: int


class BoundPad:
    """The launch that pads an operand into the workspace, whose address is known when it starts."""

    def __init__(self, modules: Modules, pad: Launch, resolve: Resolve) -> None:
        self._modules = modules
        self._pad = pad
        self._resolve = resolve
        self._bound: dict[int, BoundLaunch] = {}

    def start(self, target: int) -> None:
        """Enqueue it; ``target`` is where the padded operand goes."""
        if target not in self._bound:
            self._bound[target] = self._modules.bind(
                self._pad, lambda ref: target if ref is WORKSPACE else self._resolve(ref)
            )
        self._bound[target].start(0)


@dataclass(slots=True)
class BoundConvolution:
    """A convolution with its addresses; the padded operand, if there is one, lies in the workspace."""

    library: SharedLibrary
    objects: Objects
    handle: int
    descriptors: Descriptors
    algorithm: int
    x: int
    w: int
    y: int
    bias: int
    addend: int
    activation: int
    own_bytes: int
    pad: BoundPad | None
    padded_bytes: int
    rest: BoundLaunch | None
    one: Any = field(default_factory=lambda: ctypes.c_float(1.0))
    zero: Any = field(default_factory=lambda: ctypes.c_float(0.0))

    @property
    def implementation(self) -> str:
        """The implementation: cuDNN, perhaps with a launch of ours before or behind."""
        return NAME if self.pad is None and self.rest is None else f"{NAME}+{OWN}"

    @property
    def workspace_bytes(self) -> int:
        """The padded operand's, then the algorithm's."""
        return self.padded_bytes + self.own_bytes

    def start(self, workspace: int) -> None:
        """Enqueue it.

        Raises:
            InputError: cuDNN refuses.
        """
        x = self.x
        if self.pad is not None:
            x = workspace
            self.pad.start(workspace)
        scratch = workspace + self.padded_bytes
        one, descriptors = ctypes.byref(self.one), self.descriptors
        beta = one if self.addend else ctypes.byref(self.zero)
        head = (
            self.handle, one, descriptors.x, x, descriptors.w, self.w, descriptors.convolution,
            self.algorithm, scratch, self.own_bytes, beta,
        )  # fmt: skip
        if self.activation:
            self.library.call(
                "cudnnConvolutionBiasActivationForward", *head, descriptors.y, self.addend or self.y,
                descriptors.bias, self.bias, self.activation, descriptors.y, self.y,
            )  # fmt: skip
        else:
            self.library.call("cudnnConvolutionForward", *head, descriptors.y, self.y)
        if self.rest is not None:
            self.rest.start(workspace)

    def close(self) -> None:
        """Give cuDNN's descriptions back."""
        self.objects.close()


@dataclass(slots=True)
class BoundPool:
    """A pool with its addresses."""

    library: SharedLibrary
    objects: Objects
    handle: int
    pool: int
    x_type: int
    y_type: int
    x: int
    y: int
    one: Any = field(default_factory=lambda: ctypes.c_float(1.0))
    zero: Any = field(default_factory=lambda: ctypes.c_float(0.0))
    implementation: str = NAME
    workspace_bytes: int = 0

    def start(self, workspace: int) -> None:
        """Enqueue it.

        Raises:
            InputError: cuDNN refuses.
        """
        self.library.call(
            "cudnnPoolingForward", self.handle, self.pool, ctypes.byref(self.one), self.x_type,
            self.x, ctypes.byref(self.zero), self.y_type, self.y,
        )  # fmt: skip

    def close(self) -> None:
        """Give cuDNN's descriptions back."""
        self.objects.close()
