"""Random ONNX graphs of every element type, optimized, written and compared."""
