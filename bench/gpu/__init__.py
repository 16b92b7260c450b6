"""Costs measured on a GPU, and what they lead to."""
