"""Layouts of tensors in memory, chosen by an integer program after verification."""
