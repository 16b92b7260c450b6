"""What ``rules show --sql`` prints: all that a rule runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from relational_tensat.base.escaping import escaped
from relational_tensat.explore.compile.compiled_rules import CompiledRules
from relational_tensat.explore.rule_run import (
    CHANGED,
    RecordedStatement,
    run_on_database,
    run_on_sources,
)
from relational_tensat.rules.model import Rule
from relational_tensat.rules.text import constant_text
from relational_tensat.tensor import AttrValue

_MATCHES = """-- its matches: classes of its roots, and of the leaves of its sources
SELECT id, root0, root1, b FROM application ORDER BY id"""
_NONE = "-- it has no match, and runs no more than this"
_UNKNOWN = "-- no operands were found that satisfy its sources and conditions"


def rule_sql(rule: Rule, database: Path | None = None) -> str:
    """Return the statements of an iteration by a rule, as if it were the only one, and its matches.

    Searching, judging, building, uniting, rebuilding and the cycle filter: all that a run with the default
    options does. What the cycle filter decides outside SQL stands as lists in the statement after its
    query.

    In a run, one query finds all that can match: rules whose sources have the same shape are one branch of
    it, and sources that begin alike share the join of that. Heads are numbered as a run meets them.

    Args:
        database: of a run: the statements are those on its e-graph, and run there as they are printed,
            which changes nothing but temporary copies. Else the e-graph has but the rule's sources.

    Raises:
        InputError: the database is not one of a run of this version.
    """
    recorded = run_on_sources(rule) if database is None else run_on_database(rule, database)
    parts = [_heading(rule, database)]
    if database is not None:
        copies = [f"CREATE TEMP TABLE {name} AS SELECT * FROM main.{name}" for name in CHANGED]
        parts += [";\n".join(copies) + ";"]
    parts += _statements(recorded) if recorded else [_UNKNOWN]
    return "\n\n".join(parts)


def _heading(rule: Rule, database: Path | None) -> str:
    where = "an e-graph that has its sources" if database is None else str(database)
    lines = [f"-- rule {escaped(f'{rule.name} ({rule.file}:{rule.line}) on {where}')}"]
    for index, pattern in enumerate(CompiledRules([rule]).patterns, start=1):
        described = ", ".join(
            f"n{i} is {node.op}{_pinned(node.literals)}" for i, node in enumerate(pattern.nodes)
        )
        lines.append(f"-- pattern {index}: {described}")
    return "\n".join(lines)


def _statements(recorded: Sequence[RecordedStatement]) -> list[str]:
    """Return the text of statements, its matches asked for as soon as they are known."""
    texts: list[str] = []
    has_matches = False
    for statement in recorded:
        text = statement.text.strip()
        heading = "" if text.startswith("--") else f"-- {statement.name}\n"
        texts.append(f"{heading}{text};")
        if statement.name == "application" and not has_matches:
            has_matches = True
            texts.append(f"{_MATCHES};")
    return texts if has_matches else [*texts, _NONE]


def _pinned(literals: tuple[tuple[str, AttrValue], ...]) -> str:
    if not literals:
        return ""
    return f" with {' '.join(f'{name}={constant_text(value)}' for name, value in literals)}"
