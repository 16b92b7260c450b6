"""Recorded cost tables."""
