"""The fate of matches that passed every check: built, united, filtered, chosen or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relational_tensat.base.files import sql
from relational_tensat.egraph.catalogue import Symbol
from relational_tensat.explain.egraph_tables import StoredEGraph, StoredNode
from relational_tensat.explain.swaps import Swaps
from relational_tensat.explain.why_not.steps import FullMatch
from relational_tensat.rules.instance import Instance, tensor_vars
from relational_tensat.rules.model import Rule

#: The possible outcomes of a match, best first.
STATUSES = ("chosen", "not chosen", "not needed", "filtered", "cyclic", "not united")


@dataclass(frozen=True, slots=True)
class MatchOutcome:
    """A match that passed every check, and what became of it.

    Attributes:
        places: the tensors that the rule would replace (a class without a name by its number).
        status: ``chosen`` (the result computes what the rule built); ``not chosen`` (the result
            computes these tensors otherwise); ``not needed`` (it does without one of them);
            ``filtered`` (what the rule built is part of a cycle); ``cyclic`` (building it would have
            closed a cycle); ``not united`` (its target is not there, or is in another e-class).
        made_by: the rule that made the target's root; "original" for the original graph, "" where
            there is no such e-node.
        iteration: the iteration that made it; -1 without such an e-node.
        cost_us: modelled cost of the result with this put in; None where it is unknown.
        detail: the e-node chosen instead, or the obstacle.
    """

    places: tuple[str, ...]
    status: str
    made_by: str = ""
    iteration: int = -1
    cost_us: float | None = None
    detail: str = ""


class Outcomes:
    """Describes what became of a rule's matches in a finished run."""

    def __init__(self, stored: StoredEGraph, rule: Rule, swaps: Swaps) -> None:
        self._stored = stored
        self._rule = rule
        self._swaps = swaps
        ((iteration,),) = stored.connection.execute(
            sql("explain/last_matched"), {"sources": len(rule.sources)}
        ).fetchall()
        self._last_iteration = int(iteration)
        self._signature_ids = {
            (signature.symbol, signature.operands): index
            for index, signature in stored.signatures.items()
        }
        self._by_content: dict[tuple[int, tuple[int, ...]], StoredNode] = {}
        for node in stored.nodes.values():
            self._by_content.setdefault((node.signature, node.children), node)

    @property
    def chosen_us(self) -> float:
        """The modelled cost of the result."""
        return self._swaps.chosen_us

    def all(
        self, matches: Sequence[FullMatch], valid: Mapping[tuple[int, ...], Instance]
    ) -> list[MatchOutcome]:
        """Return what became of each match, best first."""
        outcomes = [self.of(match, valid[match.signatures]) for match in matches]
        return sorted(outcomes, key=lambda outcome: STATUSES.index(outcome.status))

    def of(self, match: FullMatch, instance: Instance) -> MatchOutcome:
        """Return what became of one match."""
        places = tuple(self._stored.class_text(root) for root in match.roots)
        target_nodes = self._targets(match, instance)
        variables = len(tensor_vars(self._rule))
        targets = [
            (target_nodes.get(root), match.bindings[root] if root < variables else 0)
            for root in instance.roots
        ]
        owners = [node.owner if node else variable for node, variable in targets]
        if tuple(owners) != match.roots:
            return self._not_united(match, places)
        nodes = [node for node, _ in targets if node is not None]
        made_by, iteration = "", -1
        if nodes:
            newest = max(nodes, key=lambda node: node.id)
            made_by = self._stored.rules.get(newest.rule, "original")
            iteration = newest.iteration
        if any(node.filtered for node in target_nodes.values()):
            return MatchOutcome(places, "filtered", made_by, iteration, None, "part of a cycle")
        return self._extracted(match, places, nodes, made_by, iteration)

    def _extracted(
        self,
        match: FullMatch,
        places: tuple[str, ...],
        nodes: Sequence[StoredNode],
        made_by: str,
        iteration: int,
    ) -> MatchOutcome:
        """Return whether extraction took what the rule built; it is in the classes of the sources."""
        choices = [self._swaps.chosen.get(root) for root in match.roots]
        chosen_nodes = [node for node in choices if node is not None]
        if len(chosen_nodes) < len(choices):
            return MatchOutcome(places, "not needed", made_by, iteration)
        if all(node.id in {choice.id for choice in chosen_nodes} for node in nodes):
            return MatchOutcome(places, "chosen", made_by, iteration, self.chosen_us)
        cost = self._swaps.cost_with(nodes)
        instead = ", ".join(self._node_text(node) for node in chosen_nodes)
        return MatchOutcome(places, "not chosen", made_by, iteration, cost, f"chosen: {instead}")

    def _targets(self, match: FullMatch, instance: Instance) -> dict[int, StoredNode]:
        """Return the e-nodes of a target as far as they exist, by the index of their value."""
        base = len(tensor_vars(self._rule))
        target_nodes: dict[int, StoredNode] = {}
        for value, target in enumerate(instance.nodes, start=base):
            classes = [self._class(child, match, target_nodes) for child in target.children]
            symbol = Symbol(target.op, target.attrs, len(target.operand_types))
            signature = self._signature_ids.get((symbol, target.operand_types), 0)
            node = self._by_content.get((signature, tuple(classes)))
            if node is not None:
                target_nodes[value] = node
        return target_nodes

    def _class(self, child: int, match: FullMatch, target_nodes: Mapping[int, StoredNode]) -> int:
        if child < len(match.bindings):
            return match.bindings[child]
        return target_nodes[child].owner if child in target_nodes else 0

    def _not_united(self, match: FullMatch, places: tuple[str, ...]) -> MatchOutcome:
        for root in match.roots:
            if any(self._swaps.depends(operand, on=root) for operand in match.bindings):
                name = self._stored.class_text(root)
                detail = f"an operand depends on {name}, which would then depend on itself"
                return MatchOutcome(places, "cyclic", detail=detail)
        return MatchOutcome(places, "not united", detail=self._lateness(match))

    def _lateness(self, match: FullMatch) -> str:
        """Return what the tables show of why a match was not processed."""
        if self._rule.name not in self._stored.rules.values():
            return "the run did not have the rule"
        bound = dict(zip(tensor_vars(self._rule), match.bindings, strict=True))
        computed = [f"?{name}" for name in self._rule.known if not self._is_known(bound[name])]
        if computed:
            return f"computed at inference: {', '.join(computed)}"
        since = max(self._stored.nodes[node].iteration for node in match.nodes)
        kind = "multi-pattern rules" if self._rule.is_multi else "rules"
        return f"possible since iteration {since}; {kind} last matched in iteration {self._last_iteration}"

    def _is_known(self, owner: int) -> bool:
        """Whether a class depends on weights and constants only."""
        text = "SELECT weight_only FROM eclass WHERE id = $id"
        ((is_known,),) = self._stored.connection.execute(text, {"id": owner}).fetchall()
        return bool(is_known)

    def _node_text(self, node: StoredNode) -> str:
        made_by = self._stored.rules.get(node.rule, "original")
        return f"{self._stored.signatures[node.signature].symbol.op} (by {made_by})"
