"""Tests of worlds side by side."""
