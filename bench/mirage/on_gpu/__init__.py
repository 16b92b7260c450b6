"""Kernels of kept μGraphs on an NVIDIA GPU, beside PyTorch's; needs PyTorch, Triton, cuda-bindings."""
