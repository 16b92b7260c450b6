"""Strategies of exploration: what decides which step is taken next.

- ``saturation``: steps of all rules until nothing is new or a limit is met; ``schedule`` decides which
  rulesets take part in which step, ``node_budgets`` how many e-nodes a step may add.
"""
