"""Reductions: smaller e-graphs with the same optimum, and the way back."""
