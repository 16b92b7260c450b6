"""Tests of tree search."""
