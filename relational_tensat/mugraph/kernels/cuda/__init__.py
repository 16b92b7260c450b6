"""CUDA from μGraphs: one source for all NVIDIA architectures, compiled by NVRTC."""
