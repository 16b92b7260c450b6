"""Triton from μGraphs: the same kernels for NVIDIA's and AMD's GPUs; Triton does layouts and pipelines."""
