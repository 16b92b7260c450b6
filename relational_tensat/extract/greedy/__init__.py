"""Greedy extraction: from the leaves up, from the root down, and in SQL."""
