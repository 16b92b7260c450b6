"""Strategies of exploration: what decides which step is taken next.

- ``saturation``: steps of all rules until nothing is new or a limit is met; ``schedule`` decides which
  rulesets take part in which step, ``node_budgets`` how many e-nodes a step may add.
- ``focus``: one world of a universe after the other, each from the cheapest graph of the one before.
- ``mcts``: tree search over worlds that are side by side.
"""
