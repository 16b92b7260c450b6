"""How much of the node limit multi-pattern rules may take."""

from __future__ import annotations


def multi_budget(e_nodes: int, limit: int) -> int:
    """Return the most e-nodes that multi-pattern rules may grow an e-graph to in one iteration.

    Args:
        e_nodes: how many there are before the iteration.
        limit: the most there may be.
    """
    return (e_nodes + 3 * limit) // 4


def scarce_budget(original: int, limit: int) -> int:
    """Return the same once that much has starved single-pattern rules: the bound of all iterations then.

    Single-pattern rules make several e-nodes of each that multi-pattern rules add (three to four on
    NasRNN and BERT with the shipped rules, next to none with TASO's).

    Args:
        original: e-nodes of the original graph.
        limit: the most there may be.
    """
    return max(limit // 4, (7 * original + limit) // 8)
