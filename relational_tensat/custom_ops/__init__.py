"""Kernels that run: C of a result's kernels as custom ops of onnxruntime, compiled where they run."""
