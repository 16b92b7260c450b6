"""An example of a strategy: one file, and nothing of the program but worlds and steps."""

from __future__ import annotations

from relational_tensat.explore.step import StepBudget, step
from relational_tensat.explore.world import World


def round_robin(world: World, budget: StepBudget, most_steps: int = 1_000) -> bool:
    """Apply one rule after the other, each alone, until none adds anything; return whether that is so."""
    rules = sorted(world.rules.all_rules)
    idle = 0
    for number in range(most_steps):
        delta = step(world, [rules[number % len(rules)]], budget)
        idle = idle + 1 if delta.is_empty and delta.is_complete else 0
        if idle == len(rules):
            break
    world.flush()
    return idle == len(rules)
