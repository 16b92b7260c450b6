"""Kernels of a model: its chains of functions and reductions, each as a kernel, a rule and a file."""
