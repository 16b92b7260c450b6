"""Tests of the adapters; each is skipped where its package is not installed."""
