"""Which kernels onnxruntime runs models by: those that the rules of its backend predict, and its own."""
