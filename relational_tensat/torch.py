"""Modules of PyTorch: optimized for onnxruntime on this CPU, and called like the modules they were.

    from relational_tensat.torch import optimize_module

    fast, result = optimize_module(model.eval(), (x,))
    y = fast(x)

    compiled = torch.compile(model.eval(), backend="relational_tensat")

It needs the extra ``relational-tensat[torch]``.
"""

from __future__ import annotations

from relational_tensat.adapters.torch_backend import backend
from relational_tensat.adapters.torch_module import OptimizedModule, optimize_module

__all__ = ["OptimizedModule", "backend", "optimize_module"]
