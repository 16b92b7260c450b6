"""Rules, terms and conditions as text of the rule language, which ``language`` reads."""

from __future__ import annotations

import sys
from dataclasses import replace

from relational_tensat.base.lazy import once_per_object
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.model import Expr, Literal, Rule, Term, Var
from relational_tensat.rules.syntax import is_word
from relational_tensat.tensor.types import AttrValue


@once_per_object
def rule_text(rule: Rule) -> str:
    """Return a rule in the rule language; ``each`` and ``let`` are put in."""
    clauses = [f'(law "{rule.law}")']
    if rule.rulesets:
        clauses.append(_clause("ruleset", [" ".join(rule.rulesets)]))
    clauses += [f"({flag})" for flag in ("symmetric", "unsound", "widened") if getattr(rule, flag)]
    clauses.append(_clause("from", [term_text(source) for source in rule.sources]))
    clauses.append(_clause("to", [term_text(target) for target in rule.targets]))
    for word, conditions in (("where", rule.conditions), ("worth", rule.worth)):
        if conditions:
            clauses.append(_clause(word, [expr_text(condition) for condition in conditions]))
    place = f"; {rule.file}:{rule.line}\n" if rule.file else ""
    return f"{place}(rule {rule.name}\n  " + "\n  ".join(clauses) + ")"


def written_rule(text: str, name: str, file: str, line: int) -> Rule:
    """Return the rule that ``rule_text`` wrote, with its own name: ``NAME[…]``.

    Raises:
        RuleError: the text is something else.
    """
    plain = text.replace(f"(rule {name}", f"(rule {name.partition('[')[0]}", 1)
    (rule,) = parse_rules(plain, file, sys.maxsize)
    return replace(rule, name=name, line=line)


def term_text(term: Term) -> str:
    """Return a term in the rule language: ``(matmul ?a (transpose ?b :perm [1 0]))``."""
    if isinstance(term, Var):
        return f"?{term.name}"
    operands = [term_text(child) for child in term.children]
    attrs = [f":{name} {expr_text(value)}" for name, value in term.attrs]
    return f"({' '.join([term.op, *operands, *attrs])})"


def expr_text(expr: Expr) -> str:
    """Return a condition or a computed value in the rule language: ``(= (rank ?a) 2)``."""
    if isinstance(expr, Var):
        return f"?{expr.name}"
    if isinstance(expr, Literal):
        return constant_text(expr.value)
    return f"({' '.join([expr.function, *(expr_text(arg) for arg in expr.args)])})"


def constant_text(value: AttrValue) -> str:
    """Return a constant in the rule language: ``true``, ``[1 1]``, ``1.5``, ``same``, ``"a text"``."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{' '.join(constant_text(item) for item in value)}]"
    if isinstance(value, str) and not is_word(value):
        return f'"{value}"'
    return str(value)


def _clause(word: str, items: list[str]) -> str:
    indent = "\n" + " " * (len(word) + 4)
    return f"({word} {indent.join(items)})"
