"""Where people work: modules of PyTorch, passes of Olive and of onnx-ir.

Nothing of these packages is imported before it is used.
"""
