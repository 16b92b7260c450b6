"""Focus: grow a world, keep the e-nodes of its cheapest graph, grow these again; start again, otherwise."""

from relational_tensat.explore.strategies.focus.focusing import explore_focus
from relational_tensat.explore.strategies.focus.going_on import explore_and_go_on

__all__ = ["explore_and_go_on", "explore_focus"]
