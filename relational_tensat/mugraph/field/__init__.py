"""Exact arithmetic that tells μGraphs apart: pairs of residues, one outside and one inside of exponents."""
