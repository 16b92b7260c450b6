"""Which kernels onnxruntime runs models by: those that the rules of its target predict, and its own."""
