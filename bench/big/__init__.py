"""Extraction from very large e-graph files."""
