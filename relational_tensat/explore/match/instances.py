"""MatchInstances: a rule on one configuration of signatures, judged once however often it matches.

Matches of the same rule whose e-nodes have the same signatures agree in all that conditions, shape
rules and target attributes can see. So each distinct configuration is judged once, in Python, by the
operators' own descriptions; the verdict and the e-nodes to build are rows that matches are joined with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relational_tensat.egraph.catalogue import Catalogue
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.enode_rows import CHILD_COLUMNS
from relational_tensat.egraph.schema import working_tables
from relational_tensat.explore.apply.targets import Bounds
from relational_tensat.explore.compile.compiled_rules import (
    CompiledRule,
    CompiledRules,
    phase_rules,
)
from relational_tensat.explore.compile.patterns import Skeleton
from relational_tensat.rules.instance import Instance, Types, instantiate
from relational_tensat.tensor.types import Attrs, ValueType


class MatchInstances:
    """Judges configurations and writes them to the tables ``instance`` and ``template``.

    ``bounds`` is how much the applications of valid instances can add.

    Args:
        first: the id of the first instance; the others follow.
    """

    def __init__(
        self, compiled: CompiledRules, catalogue: Catalogue, database: Database, first: int = 1
    ) -> None:
        self._compiled = compiled
        self._catalogue = catalogue
        self._database = database
        self._count = first - 1
        self._applications: dict[int, tuple[tuple[str, Attrs], Types]] = {}
        self._sites = [_variable_sites(rule, compiled) for rule in compiled.rules]
        #: By rule id: the most nodes that a valid instance builds.
        self._sizes: dict[int, int] = {}
        #: The most operands of a node that a valid instance builds.
        self._operands = 1

    @property
    def last(self) -> int:
        """The id of the last instance that was judged."""
        return self._count

    def create_tables(self) -> None:
        """Create the two tables, empty."""
        roots, tables = self._compiled.root_columns, working_tables()
        tables["instance"].create(self._database, g=roots * self._compiled.node_columns, root=roots)
        tables["template"].create(self._database, s=CHILD_COLUMNS)

    def judge(self, configurations: Sequence[tuple[int, ...]]) -> None:
        """Judge configurations in order: rows of rule id and signatures (0 where there is no node).

        Raises:
            UnsoundRuleError: a target's type differs from its source's.
        """
        columns = self._compiled.root_columns * self._compiled.node_columns
        instances: list[tuple[int, ...]] = []
        template: list[tuple[int, ...]] = []
        for rule_id, *signatures in sorted(configurations):
            self._database.check_interrupt()
            self._count += 1
            rule = self._compiled.rule(rule_id)
            sites = self._sites[rule.id - self._compiled.first]
            types = tuple([self._applied(signatures[n])[1][child] for n, child in sites])
            instance = self._instantiate(rule, signatures, types)
            roots = [0] * self._compiled.root_columns
            if instance is not None:
                rows, roots = self._template_rows(rule, instance)
                template.extend(rows)
                self._sizes[rule_id] = max(self._sizes.get(rule_id, 0), len(rows))
                operands = [len(node.children) for node in instance.nodes]
                self._operands = max([self._operands, *operands])
            padding = [0] * (columns - len(signatures))
            pattern = 0 if rule.rule.is_multi else rule.patterns[0]
            instances.append((self._count, rule_id, pattern, *signatures, *padding, *roots))
        self._database.append("instance", instances)
        self._database.append("template", template)

    def bounds(
        self, matches: Mapping[int, int], node_limit: int, *, is_whole: bool = False
    ) -> Bounds:
        """Return what bounds building the targets of so many matches, by rule id.

        Args:
            matches: of rules of one source each, or of several.
        """
        sizes = [(self._sizes.get(rule, 0), count) for rule, count in matches.items()]
        is_multi = any(self._compiled.rule(rule).rule.is_multi for rule in matches)
        sources = self._compiled.root_columns if is_multi else min(len(matches), 1)
        return Bounds(
            node_limit,
            total_nodes=sum(nodes * count for nodes, count in sizes),
            steps=max((nodes for nodes, _ in sizes), default=0),
            sources=sources,
            bound=sources * self._compiled.leaf_columns,
            roots=self._compiled.root_columns,
            operands=self._operands,
            is_whole=is_whole,
            rules=phase_rules(self._compiled, multi=sources > 1),
        )

    def _instantiate(
        self, compiled: CompiledRule, signatures: Sequence[int], types: tuple[ValueType, ...]
    ) -> Instance | None:
        symbols: list[tuple[str, Attrs]] = []
        roots: list[ValueType] = []
        for index, pattern in enumerate(compiled.patterns):
            start = index * self._compiled.node_columns
            size = len(self._compiled.patterns[pattern - 1].nodes)
            symbols += [self._applied(g)[0] for g in signatures[start : start + size]]
            roots.append(self._catalogue.type_of(signatures[start]))
        return instantiate(compiled.rule, tuple(symbols), types, tuple(roots))

    def _applied(self, signature: int) -> tuple[tuple[str, Attrs], Types]:
        """Return a signature's operator with its attributes, and its operands' types.

        Kept: a signature is in many configurations.
        """
        applied = self._applications.get(signature)
        if applied is None:
            symbol = self._catalogue.symbol_of(signature)
            types = self._catalogue.operand_types(signature)
            applied = self._applications[signature] = (symbol.op, dict(symbol.attrs)), types
        return applied

    def _template_rows(
        self, compiled: CompiledRule, instance: Instance
    ) -> tuple[list[tuple[int, ...]], list[int]]:
        """Return rows of ``template`` and the binding positions (from 1) of the target roots."""
        variables = len(compiled.slots)
        base = self._compiled.bound(compiled)

        def binding(index: int) -> int:
            if index < variables:
                return compiled.slots[index] + 1
            return base + index - variables + 1

        rows = []
        for step, target in enumerate(instance.nodes, start=1):
            signature = self._catalogue.intern_checked(
                target.op, target.attrs, target.operand_types, target.type
            )
            kind = self._catalogue.signatures[signature - 1].type
            head = self._catalogue.heads[signature - 1]
            sources = [binding(child) for child in target.children]
            sources += [0] * (CHILD_COLUMNS - len(sources))
            rows.append((self._count, step, signature, kind, head, *sources))
        roots = [binding(root) for root in instance.roots]
        return rows, roots + [0] * (self._compiled.root_columns - len(roots))


def _variable_sites(rule: CompiledRule, compiled: CompiledRules) -> list[tuple[int, int]]:
    """Return, per tensor variable, a (signature position, child position) where it is an operand."""
    sites: list[tuple[int, int]] = []
    leaf_sites: list[tuple[int, int]] = []
    for index, pattern in enumerate(rule.patterns):
        positions: list[tuple[int, int]] = []
        _leaf_sites(
            compiled.patterns[pattern - 1].skeleton, index * compiled.node_columns, positions
        )
        leaf_sites += positions + [(0, 0)] * (compiled.leaf_columns - len(positions))
    sites.extend(leaf_sites[slot] for slot in rule.slots)
    return sites


def _leaf_sites(shape: Skeleton, start: int, sites: list[tuple[int, int]]) -> int:
    """Append (node, child position) of each leaf in pre-order; return the next free node index."""
    next_node = start + 1
    for position, child in enumerate(shape):
        if child is None:
            sites.append((start, position))
        else:
            next_node = _leaf_sites(child, next_node, sites)
    return next_node
