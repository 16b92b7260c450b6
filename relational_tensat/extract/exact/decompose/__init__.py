"""Decomposition: an e-graph as pieces that are solved apart."""
