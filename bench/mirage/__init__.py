"""Searches for the kernels of Mirage's benchmarks, beside its published numbers."""
