"""Regions of models as programs that kernels are sought for."""
