"""ONNX's own conformance models: each is optimized, and must still compute what it did."""
