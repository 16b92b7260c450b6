"""What ``rules show --sql`` prints: the SQL that finds a rule's matches."""

from __future__ import annotations

from relational_tensat.explore.compile.compiled import CompiledRules, join_query, note_examples
from relational_tensat.explore.compile.live import live_skeletons
from relational_tensat.explore.compile.search_query import search_query
from relational_tensat.rules.model import Rule
from relational_tensat.rules.text import constant_text
from relational_tensat.tensor import AttrValue


def rule_sql(rule: Rule) -> str:
    """Return the statements that find a rule's matches, as if it were the only rule.

    In a run, one query finds all that can match: rules whose sources have the same shape are one branch of
    it, and sources that begin alike share the join of that. Heads are numbered as a run meets them.
    """
    compiled = CompiledRules([rule])
    note_examples(compiled)
    phase = "multi" if rule.is_multi else "single"
    parts = [f"-- rule {rule.name} ({rule.file}:{rule.line})"]
    for number, pattern in enumerate(compiled.patterns, start=1):
        described = ", ".join(
            f"n{i} is {node.op}{_pinned(node.literals)}" for i, node in enumerate(pattern.nodes)
        )
        parts.append(f"-- pattern {number}: {described}")
    parts.append(search_query(live_skeletons(compiled, phase), compiled, phase) + ";")
    parts += [join_query(group, compiled) + ";" for group in compiled.joins]
    return "\n".join(parts)


def _pinned(literals: tuple[tuple[str, AttrValue], ...]) -> str:
    if not literals:
        return ""
    return f" with {' '.join(f'{name}={constant_text(value)}' for name, value in literals)}"
