"""Damaged files: whatever is wrong with one, the program reports it in one line."""
