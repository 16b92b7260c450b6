"""Checking a step, knowing nothing of how it was found: only the rule, and the graphs before and after."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from relational_tensat.base.errors import VerificationError
from relational_tensat.explain.rewrite import Rewrite
from relational_tensat.explain.stored import StoredSignature
from relational_tensat.explain.terms import Outputs, Terms
from relational_tensat.rules.instance import instantiate, tensor_vars
from relational_tensat.rules.model import Term as Pattern
from relational_tensat.rules.model import Var
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import ValueType


class Checker:
    """Checks steps over one collection of terms."""

    def __init__(self, terms: Terms, signatures: Mapping[int, StoredSignature]) -> None:
        self._terms = terms
        self._signatures = signatures
        self._signature_ids = {
            (s.symbol.op, s.symbol.attrs, s.operands): n for n, s in signatures.items()
        }
        self._typed = 0

    def check(self, step: Rewrite) -> None:
        """Check that a step is one application of its rule, and that its graphs are of sound types.

        Raises:
            VerificationError: it is not; gives the reason.
        """
        sources, targets = self._sides(step)
        self._check_types()
        if not step.forward:
            sources, targets = targets, sources
        for replaced in step.replaced:
            if (sources[replaced.output], targets[replaced.output]) != (
                replaced.before,
                replaced.after,
            ):
                raise _wrong(step, "its rule says something else")
        pairs = {(replaced.before, replaced.after) for replaced in step.replaced}
        if not self._only_replaced(step.before, step.after, pairs):
            raise _wrong(step, "more has changed than what its rule replaces")

    def _check_types(self) -> None:
        """Check the terms that have been added: operators take operands of the types that they get."""
        for term in range(self._typed, len(self._terms)):
            signature, children = self._terms[term]
            stored = self._signatures[signature]
            operands = tuple(self._type(child) for child in children)
            result = get_operator(stored.symbol.op).infer(operands, dict(stored.symbol.attrs))
            if operands != stored.operands or result != stored.type:
                raise VerificationError(f"a term of {stored.symbol.op} has operands of other types")
        self._typed = len(self._terms)

    def _type(self, term: int) -> ValueType:
        return self._signatures[self._terms[term].signature].type

    def _sides(self, step: Rewrite) -> tuple[list[int], list[int]]:
        """Return the terms that the rule's sources and targets are, with the step's operands put in."""
        rule = step.law.rule
        names = dict(zip(tensor_vars(rule), step.operands, strict=True))
        signatures = iter(step.law.signatures)
        sources = [self._source(source, names, signatures) for source in rule.sources]
        node_signatures = [self._signatures[signature_id] for signature_id in step.law.signatures]
        instance = instantiate(
            rule,
            [(s.symbol.op, dict(s.symbol.attrs)) for s in node_signatures],
            tuple(self._type(term) for term in step.operands),
            tuple(self._type(source) for source in sources),
        )
        if instance is None:
            raise _wrong(step, "its rule does not apply to such operands")
        values = list(step.operands)
        for node in instance.nodes:
            signature = self._signature_ids[node.op, node.attrs, node.operand_types]
            values.append(self._terms.id_of(signature, [values[child] for child in node.children]))
        return sources, [values[root] for root in instance.roots]

    def _source(self, pattern: Pattern, names: Mapping[str, int], signatures: Iterator[int]) -> int:
        """Return the term of a source; its nodes take the signatures in pre-order."""
        if isinstance(pattern, Var):
            return names[pattern.name]
        signature = next(signatures)
        children = [self._source(child, names, signatures) for child in pattern.children]
        return self._terms.id_of(signature, children)

    def _only_replaced(
        self, before: Outputs, after: Outputs, pairs: Collection[tuple[int, int]]
    ) -> bool:
        """Whether two graphs are the same but for replaced terms, at some or all of their uses."""
        pending = list(zip(before, after, strict=True))
        visited = set(pending)
        while pending:
            old, new = pending.pop()
            if old == new or (old, new) in pairs:
                continue
            a, b = self._terms[old], self._terms[new]
            if a.signature != b.signature:
                return False
            pairs_below = set(zip(a.children, b.children, strict=True)) - visited
            visited |= pairs_below
            pending += pairs_below
        return True


def _wrong(step: Rewrite, reason: str) -> VerificationError:
    return VerificationError(
        f"a step of the explanation by {step.law.rule.name!r} is wrong: {reason}"
    )
