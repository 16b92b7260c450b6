"""Modules of PyTorch: optimized, beside PyTorch itself and onnxruntime."""
