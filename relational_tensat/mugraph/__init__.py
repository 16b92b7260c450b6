"""Kernels nobody wrote: μGraphs found by joins, and checked."""
