"""Code of μGraphs: CUDA, Triton and C, the costs of kernels, and files of kernels."""
