"""Focus: grow a subgraph, keep the e-nodes of its cheapest graph, grow these; start again, otherwise."""

from relational_tensat.explore.strategies.focus.focus import explore_focus

__all__ = ["explore_focus"]
