"""Rules printed in their own language, and as SQL."""

from __future__ import annotations

from dataclasses import replace

import duckdb

from relational_tensat.cli.rules_show_text import rule_sql
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import load_rules, taso_rules
from relational_tensat.rules.text import rule_text

ALL = [*load_rules(), *taso_rules()]


def test_a_printed_rule_reads_back_the_same() -> None:
    for rule in ALL:
        plain = replace(rule, name=rule.name.partition("[")[0])
        (again,) = parse_rules(rule_text(plain), "printed")
        assert replace(again, file=plain.file, line=plain.line) == plain, rule.name


def test_the_sql_names_the_rule_and_parses() -> None:
    for rule in load_rules(only=["reassociate-right", "merge-products-sharing-left"]):
        text = rule_sql(rule)
        assert text.startswith(f"-- rule {rule.name} (")
        statements = duckdb.extract_statements(text)
        assert len(statements) == text.count("-- match ") + text.count("-- join ") > 0
        assert ("-- join " in text) == rule.is_multi
