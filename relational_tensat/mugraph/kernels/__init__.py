"""Code of μGraphs: CUDA, Triton and C, what a kernel costs, and files of kernels."""
