"""Reductions that merge a class into the e-nodes that need it."""

from __future__ import annotations

from relational_tensat.base.deadline import Check, unlimited
from relational_tensat.extract.exact.reduce.dominance import drop_dominated_classes
from relational_tensat.extract.exact.reduce.draft import Draft
from relational_tensat.extract.exact.reduce.dropping import drop_dominated
from relational_tensat.extract.exact.reduce.reduced import Reduced

_MORE_EDGES = 4
"""A class is merged into its user where that makes at most so many more edges."""

_GROWTH = 4.0
"""How many times as many e-nodes there may be meanwhile when classes are passed by."""


def merge_single_parents(reduced: Reduced) -> Reduced:
    """Merge a class with one e-node, needed by one e-node only, into that e-node.

    Whoever takes the one takes the other: what both cost and need is the same in every choice.
    """
    return _merged(reduced, 1, unlimited)


def merge_single_users(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Merge a class needed by one e-node only into that e-node's class, each way apart.

    If only e-node ``u`` needs class ``d``, then a choice with ``u`` has one e-node ``f`` of ``d``,
    which nobody else needs: instead of ``u`` the class of ``u`` gets one e-node per ``f``, which
    costs and needs what ``u`` and ``f`` do. Where ``f`` needs the class of ``u``, they were in no
    acyclic choice together.
    """
    return _merged(reduced, None, check)


def _merged(reduced: Reduced, most_members: int | None, check: Check) -> Reduced:
    draft = Draft(reduced)
    waiting = [klass for klass, users in enumerate(draft.users) if len(users) == 1]
    moved = False
    while waiting:
        check()
        klass = waiting.pop()
        if klass == draft.root or len(draft.users[klass]) != 1:
            continue
        (user,) = draft.users[klass]
        members = list(draft.members[klass])
        if (most_members is not None and len(members) > most_members) or not members:
            continue
        if (len(members) - 1) * (len(draft.children[user]) - 1) > _MORE_EDGES:
            continue
        owner = draft.owner[user]
        if owner == klass or (owner == draft.root and len(members) > 1):  # a root of one stays so
            continue
        moved = True
        touched = {child for node in members for child in draft.children[node]}
        for node in members:
            if owner not in draft.children[node]:
                draft.merge(user, node)
        draft.drop(user)
        for node in members:
            draft.drop(node)
        waiting.extend(sorted(child for child in touched if len(draft.users[child]) == 1))
    return draft.finish() if moved else reduced


def pass_through(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Let free e-nodes reach past classes that only stand between; kept where that shrinks.

    If nothing needs class ``d`` but free e-nodes ``u`` that need nothing else, then a free e-node
    ``f`` of ``d`` that needs only ``q`` is superfluous once the class of every ``u`` has a free
    e-node that needs ``q``: who would go over ``d`` to ``q`` goes to ``q`` at once. The other way
    round, who goes to ``q`` at once may go over ``d``: if ``d`` is not needed otherwise, by ``f``;
    if it is, either by ``f``, or by what was chosen for ``d`` without need for ``q``, whichever
    closes no circle (both do only where there was one before).

    Classes in the middle vanish, and those that serve the same users compare: with the dominated
    e-nodes and classes left out, little is left of the many ways to group what is done together.
    """
    draft = Draft(reduced)
    waiting = [klass for klass in range(len(draft.members)) if _is_between(draft, klass)]
    limit = _GROWTH * reduced.problem.n_nodes
    for klass in waiting:
        check()
        _pass_by(draft, klass)
        if len(draft.owner) > limit:
            return reduced
    passed = drop_dominated_classes(drop_dominated(draft.finish()), check)
    return passed if passed.problem.n_nodes < reduced.problem.n_nodes else reduced


def _is_between(draft: Draft, klass: int) -> bool:
    """Whether only free e-nodes that need nothing else need a class."""
    return klass != draft.root and all(
        _is_step(draft, user) and draft.owner[user] != draft.root for user in draft.users[klass]
    )


def _is_step(draft: Draft, node: int) -> bool:
    """Whether an e-node is free and needs exactly one class."""
    return draft.cost_us[node] == 0.0 and len(draft.children[node]) == 1


def _pass_by(draft: Draft, klass: int) -> None:
    """Give every user of a class a step to where the class's own steps lead, and drop these."""
    users = [user for user in draft.users[klass] if draft.owner[user] != klass]  # no self-loops
    for node in [node for node in draft.members[klass] if _is_step(draft, node)]:
        (target,) = draft.children[node]
        if target != klass:
            there = {draft.owner[user] for user in draft.users[target] if _is_step(draft, user)}
            for user in users:
                if draft.owner[user] not in there and draft.owner[user] != target:
                    there.add(draft.owner[user])
                    draft.merge(user, node)
        draft.drop(node)
    if not draft.members[klass]:
        for user in users:
            draft.drop(user)
