"""Decomposition: an e-graph as components that are solved each on its own."""
