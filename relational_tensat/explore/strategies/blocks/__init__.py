"""Recurring blocks: each distinct one is explored once, and what was found is copied to the others."""

from relational_tensat.explore.strategies.blocks.exploring import explore_blocks
from relational_tensat.explore.strategies.blocks.report import BlocksReport

__all__ = ["BlocksReport", "explore_blocks"]
