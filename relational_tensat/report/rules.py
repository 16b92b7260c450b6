"""What ``rules show`` prints: a rule in the rule language, and the SQL that finds its matches."""

from __future__ import annotations

from relational_tensat.explore.compile import CompiledRules, join_query, match_query
from relational_tensat.graph import AttrValue
from relational_tensat.rules.model import Apply, Expr, Literal, Rule, Term, Var


def rule_text(rule: Rule) -> str:
    """Return a rule in the rule language; what ``each`` and ``let`` stood for is put in."""
    clauses = [f'(law "{rule.law}")']
    clauses += [f"({flag})" for flag in ("symmetric", "unsound") if getattr(rule, flag)]
    clauses.append(_clause("from", [_term(source) for source in rule.sources]))
    clauses.append(_clause("to", [_term(target) for target in rule.targets]))
    for word, asked in (("where", rule.conditions), ("worth", rule.worth)):
        if asked:
            clauses.append(_clause(word, [_expr(condition) for condition in asked]))
    place = f"; {rule.file}:{rule.line}\n" if rule.file else ""
    return f"{place}(rule {rule.name}\n  " + "\n  ".join(clauses) + ")"


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


def _clause(word: str, items: list[str]) -> str:
    indent = "\n" + " " * (len(word) + 4)
    return f"({word} {indent.join(items)})"


def _term(term: Term) -> str:
    if isinstance(term, Var):
        return f"?{term.name}"
    return (
        f"({' '.join([*_head(term), *(f':{name} {_expr(value)}' for name, value in term.attrs)])})"
    )


def _head(term: Apply) -> list[str]:
    return [term.op, *(_term(child) for child in term.children)]


def _expr(expr: Expr) -> str:
    if isinstance(expr, Var):
        return f"?{expr.name}"
    if isinstance(expr, Literal):
        return _constant(expr.value)
    return f"({' '.join([expr.function, *(_expr(arg) for arg in expr.args)])})"


def _constant(value: AttrValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{' '.join(_constant(item) for item in value)}]"
    return str(value)


def _pinned(literals: tuple[tuple[str, AttrValue], ...]) -> str:
    if not literals:
        return ""
    return f" with {' '.join(f'{name}={_constant(value)}' for name, value in literals)}"
