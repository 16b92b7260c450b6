"""Operands that are known before inference: where rules ask for them, ``(worth (known ?x))``.

A factor per column of a product goes into its matrix for nothing where both are weights, and makes a matrix
that is computed at each inference where it is not: a vector's product becomes a matrix's. No type tells the
one from the other, so configurations do not; each match is looked at, as the e-graph is then.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np

from relational_tensat.egraph.egraph import EGraph, classes_of_weights
from relational_tensat.egraph.enode_rows import Ints
from relational_tensat.explore.compile.compiled import CompiledRules, is_one_of
from relational_tensat.explore.match.extremes import Mask
from relational_tensat.rules.instance import tensor_vars


class KnownOperands:
    """Tests which applications bind something to be computed where the rule asks for what is known.

    Where no rule asks, no query changes.
    """

    def __init__(self, egraph: EGraph, compiled: CompiledRules) -> None:
        self._egraph = egraph
        #: By rule, the leaves that have to be known.
        self._leaves: dict[int, tuple[int, ...]] = {}
        for rule in compiled.rules:
            names = tensor_vars(rule.rule) if rule.rule.known else ()
            if names:
                places = (rule.slots[names.index(name)] for name in rule.rule.known)
                self._leaves[rule.id] = tuple(places)

    def left_out(self, rules: Ints, leaves: Sequence[Ints]) -> Mask | None:
        """Return which applications are left out; None where no rule asks.

        Args:
            rules: by application, its rule's id.
            leaves: the classes that it binds, a column each.
        """
        asking = np.isin(rules, np.array(sorted(self._leaves), np.int32))
        if not asking.any():
            return None
        is_known = self._is_known()
        for rule in np.unique(rules[asking]).tolist():
            of_rule = np.flatnonzero(rules == rule)
            for leaf in self._leaves[rule]:
                of_rule = of_rule[is_known[leaves[leaf][of_rule]]]
            asking[of_rule] = False
        return asking

    def ruled_out(self, rule: str, leaves: Sequence[str], rules: Set[int]) -> tuple[str, str]:
        """Return the condition on applications that are left out, and the table that it reads.

        Both are text; "" where no rule asks.

        Args:
            rule: the column of the rule's id.
            leaves: the columns of the classes that a match binds.
            rules: those that take part.
        """
        asking: dict[int, list[int]] = {}
        for rule_id in sorted(self._leaves.keys() & rules):
            for leaf in self._leaves[rule_id]:
                asking.setdefault(leaf, []).append(rule_id)
        if not asking:
            return "", ""
        self._egraph.database.run("match/known", is_known=self._is_known()[1:].tolist())
        unknown = [
            f"({is_one_of(rule, rule_ids)} AND NOT known_class.is_known[{leaves[leaf]}])"
            for leaf, rule_ids in sorted(asking.items())
        ]
        return "known_class", " OR ".join(unknown)

    def _is_known(self) -> Mask:
        """Return by class whether it can be had from weights only."""
        is_known = np.zeros(self._egraph.next_id, np.bool_)
        is_known[classes_of_weights(self._egraph, hidden=self._egraph.is_universe)] = True
        return is_known
