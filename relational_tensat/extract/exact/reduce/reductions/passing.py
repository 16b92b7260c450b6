"""The reduction that reaches past classes which only stand between."""

from __future__ import annotations

from relational_tensat.base.deadline import Check, unlimited
from relational_tensat.extract.exact.reduce.declaration import Stage, reduction
from relational_tensat.extract.exact.reduce.dominance import drop_dominated, drop_dominated_classes
from relational_tensat.extract.exact.reduce.draft import Draft
from relational_tensat.extract.exact.reduce.reduced import Reduced
from relational_tensat.extract.techniques import Gain

_GROWTH = 4.0
"""How many times as many e-nodes there may be meanwhile when classes are passed by."""


@reduction(
    "pass-through",
    "reach past classes that only stand between; drop what is dominated then",
    stage=Stage.COSTLY,
    order=30,
    earns_on=Gain("rings 300", "simplex_iterations"),
)
def pass_through(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Let free e-nodes reach past classes that only stand between; kept where that shrinks.

    If nothing needs class ``d`` but free e-nodes ``u`` that need nothing else, then a free e-node
    ``f`` of ``d`` that needs only ``q`` is superfluous once the class of every ``u`` has a free
    e-node that needs ``q``: who would go over ``d`` to ``q`` goes to ``q`` at once. The other way
    round, who goes to ``q`` at once may go over ``d``: if ``d`` is not needed otherwise, by ``f``;
    if it is, either by ``f``, or by what was chosen for ``d`` without need for ``q``, whichever
    closes no cycle (both do only where there was one before).

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
            target_owners = {
                draft.owner[user] for user in draft.users[target] if _is_step(draft, user)
            }
            for user in users:
                if draft.owner[user] not in target_owners and draft.owner[user] != target:
                    target_owners.add(draft.owner[user])
                    draft.merge(user, node)
        draft.drop(node)
    if not draft.members[klass]:
        for user in users:
            draft.drop(user)
