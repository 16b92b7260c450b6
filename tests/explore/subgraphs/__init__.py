"""Tests of subgraphs side by side."""
