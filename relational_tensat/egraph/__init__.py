"""The e-graph: e-nodes, e-classes and union-find as DuckDB tables."""

from relational_tensat.egraph.egraph import EGraph

__all__ = ["EGraph"]
