"""Cases of the suites of other optimizers of ONNX models, rebuilt, and what each tool makes of them."""
