"""Best first: grow an e-graph by the applications that promise most."""

from relational_tensat.explore.strategies.best_first.growing import explore_best_first

__all__ = ["explore_best_first"]
