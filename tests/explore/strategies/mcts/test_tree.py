"""The tree: selection, expansion and update, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from relational_tensat.explore.exploration_options import TreeOptions
from relational_tensat.explore.strategies.mcts.tree import Tree, TreeNode
from relational_tensat.explore.subgraphs.cheap_graph import CheapGraph

MEMBERS = np.zeros(0, np.int32)


def graph() -> CheapGraph:
    """Return what stands for a subgraph's graph where nobody looks at it."""
    return CheapGraph.__new__(CheapGraph)


def tree_of(options: TreeOptions, live: set[int]) -> Tree:
    """Return a tree that has a root only."""
    root = TreeNode(0, None, 0, MEMBERS, graph(), live=frozenset(live))
    return Tree(root, options, np.random.default_rng(0))


def grown(node: TreeNode | None, live: set[int], reward_ms: float = 0.0) -> TreeNode:
    """Return a new node as if its rule had been applied."""
    assert node is not None
    node.graph, node.live, node.reward_ms = graph(), frozenset(live), reward_ms
    return node


def test_the_root_has_all_its_live_children_first() -> None:
    tree = tree_of(TreeOptions(expansion=0.0), {3, 5, 8})
    children = [tree.select() for _ in range(3)]
    assert {child.rule for child in children if child is not None} == {3, 5, 8}
    assert tree.select() is None  # no subgraph is known that could be expanded
    for child in children:
        tree.end(grown(child, {1}), [])
    below = tree.select()
    assert below is not None
    assert below.parent in children


def test_in_the_paper_any_node_is_expanded_with_a_probability() -> None:
    tree = tree_of(TreeOptions(variant="paper", expansion=0.5), set(range(1, 40)))
    depths = []
    for _ in range(60):
        node = grown(tree.select(), set(range(1, 40)))
        depths.append(0 if node.parent is tree.root else 1)
        tree.end(node, [])
    assert 20 < sum(depths) < 40


@pytest.mark.parametrize(
    ("variant", "expected"), [("source", (1.96, 0.5 + 0.9 * 1.96)), ("paper", (2.5, 3.0))]
)
def test_an_update_adds_the_return_from_the_node_up(
    variant: str, expected: tuple[float, float]
) -> None:
    """By hand: 0.25 + 0.9·(1 + 0.9·1) = 1.96 and, one above, 0.5 + 0.9·1.96; undiscounted, the sums."""
    tree = tree_of(TreeOptions(variant=variant, discount=0.9), {1})
    child = grown(tree.select(), {2}, 0.5)
    tree.end(child, [])
    grandchild = grown(tree.select(), {3}, 0.25)
    assert grandchild.parent is child
    rewards_ms = [1.0, 1.0] if variant == "source" else [1.25, 1.0]
    assert tree.end(grandchild, rewards_ms) == pytest.approx(expected[0])
    assert (grandchild.visits, child.visits, tree.root.visits) == (1, 2, 2)
    assert child.value_ms == pytest.approx(0.5 + expected[1])
    assert tree.root.under_way == child.under_way == 0


def test_selection_goes_where_ucb_is_greatest_and_rollouts_under_way_count() -> None:
    tree = tree_of(TreeOptions(expansion=0.0, exploration_constant=0.1), {1, 2})
    first, second = grown(tree.select(), {5, 6, 7}, 1.0), grown(tree.select(), {5, 6, 7}, 0.9)
    tree.end(first, [])
    tree.end(second, [])
    chosen = [tree.select() for _ in range(4)]
    parents = [node.parent for node in chosen if node is not None]
    assert parents[0] is first
    assert second in parents  # visits without reward make the first less attractive


def test_nothing_follows_what_is_saturated_or_full() -> None:
    tree = tree_of(TreeOptions(), {1, 2})
    saturated, full = grown(tree.select(), {5}), grown(tree.select(), {5})
    saturated.is_saturated, full.is_whole = True, False
    tree.end(saturated, [])
    tree.end(full, [])
    assert tree.select() is None
    assert tree.best_child() is full
