"""Searches beside saturation, within equal limits."""
