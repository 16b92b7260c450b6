"""Whole runs as processes, within their limits."""
