"""Real ONNX files: nodes and modelled times beside other optimizers."""
