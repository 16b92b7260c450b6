"""What ``rules show --sql`` prints: the SQL that finds a rule's matches."""

from __future__ import annotations

from relational_tensat.explore.compile import CompiledRules, join_query, match_query
from relational_tensat.graph import AttrValue
from relational_tensat.rules.model import Rule
from relational_tensat.rules.text import constant_text


def rule_sql(rule: Rule) -> str:
    """Return the statements that find a rule's matches, as if it were the only rule.

    In a run, rules whose sources have the same shape share one query: they are rows of the table
    ``skeleton_row``, which says what operator stands at each node.
    """
    compiled = CompiledRules([rule])
    phase = "multi" if rule.is_multi else "single"
    parts = [f"-- rule {rule.name} ({rule.file}:{rule.line})"]
    for skeleton in compiled.skeletons:
        for number in skeleton.patterns:
            nodes = compiled.patterns[number - 1].nodes
            described = ", ".join(
                f"n{i} is {node.op}{_pinned(node.literals)}" for i, node in enumerate(nodes)
            )
            parts.append(f"-- pattern {number}: {described}")
        parts.append(match_query(skeleton, compiled, phase=phase) + ";")
    parts += [join_query(group, compiled) + ";" for group in compiled.joins]
    return "\n".join(parts)


def _pinned(literals: tuple[tuple[str, AttrValue], ...]) -> str:
    if not literals:
        return ""
    return f" with {' '.join(f'{name}={constant_text(value)}' for name, value in literals)}"
