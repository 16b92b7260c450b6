"""Exact extraction: reduce, decompose, relax, and solve as an integer program."""
