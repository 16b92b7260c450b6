"""Strategies of exploration: they decide which step is taken next.

- ``saturation``: steps of all rules until nothing is new or a limit is met; ``policy`` decides which rules
  take part in which step, and how many e-nodes it may add.
- ``focus``: one subgraph of a universe after the other, each from the cheapest graph of the one before.
- ``mcts``: tree search over subgraphs that are side by side.

``strategy`` says what a strategy is.
"""

from __future__ import annotations

from typing import Any

from relational_tensat.base.lazy import Registry

_FOCUS = f"{__name__}.saturation_then_focus:explore_focus"

#: What ``--search`` names; each is a ``strategy.Strategy``. Options read the names without importing one.
STRATEGIES: Registry[Any] = Registry(
    "search",
    {
        "saturation": f"{__name__}.saturation:explore_whole",
        "auto": _FOCUS,
        "focus": _FOCUS,
        "focus-mcts": _FOCUS,
        "mcts": f"{__name__}.mcts.decisions:explore_tree",
    },
)
