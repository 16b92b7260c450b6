"""What cuDNN's headers say (cudnn_graph_v9.h, cudnn_ops_v9.h, cudnn_cnn_v9.h): values and signatures."""

from __future__ import annotations

import ctypes
from typing import Any

from relational_tensat.gpu.cuda.shared import DOUBLE, INT, POINTER, SIZE

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
