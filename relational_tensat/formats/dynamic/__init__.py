"""ONNX models with dynamic dimensions: read at several sizes, and written with these dimensions again."""
