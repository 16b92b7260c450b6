"""Searches that learn from runs on other models."""
