"""Kernels without a GPU: emitted CUDA thread by thread, emitted Triton by its interpreter, on the CPU."""
