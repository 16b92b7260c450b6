"""Damaged files: whatever is wrong with one, the program says so in one line."""
