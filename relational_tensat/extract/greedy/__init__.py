"""Greedy extraction: from the leaves up, and from the root down."""
