"""Convolutions with an addend as cuDNN has them; those with bias and relu are plain operators."""

from __future__ import annotations

from relational_tensat.rules.targets.conv_add import WINDOW, ConvAdd
from relational_tensat.rules.targets.cuda.activations import activation_part
from relational_tensat.rules.targets.fused_kernel import FusedKernel, Part
from relational_tensat.tensor import Attrs
from relational_tensat.tensor.operators import Attr
from relational_tensat.tensor.operators.activations import NO_ACTIVATION


class CudnnConvAdd(ConvAdd):
    """relu(x * w + bias + z), or without relu: cudnnConvolutionBiasActivationForward."""

    name = "cuda_conv_add"
    attrs = (*WINDOW, Attr("act", "str", NO_ACTIVATION, (NO_ACTIVATION, "relu")))

    def activation(self, attrs: Attrs, operand: int) -> Part | None:
        """One of cuDNN's."""
        return activation_part(attrs, operand)


CONVOLUTION_KERNELS: tuple[type[FusedKernel], ...] = (CudnnConvAdd,)
