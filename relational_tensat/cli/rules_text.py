"""The output of the ``rules`` commands: verdicts, derivations, the SQL of a rule, the language's words.

``rules verify`` prints a line a rule, then the counterexamples. ``rules derive`` prints a line a rule, then
those that are not derived, and why. ``rules show --sql`` prints all statements of a rule; ``rules
functions`` and ``rules operators`` list the words of the rule language.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.console import Console

from relational_tensat.base.shown_text import escaped
from relational_tensat.cli.console import table
from relational_tensat.rules.functions import functions
from relational_tensat.rules.model import constant_text
from relational_tensat.tensor import AttrValue
from relational_tensat.tensor.operators import Attr, Operator, operators
from relational_tensat.tensor.operators.attributes import REQUIRED
from relational_tensat.tensor.types import FLOAT_DTYPES

if TYPE_CHECKING:
    from relational_tensat.explore.derivation import Derivation
    from relational_tensat.explore.rule_run import RecordedStatement
    from relational_tensat.rules.model import Rule
    from relational_tensat.rules.soundness.parallel import Verified


def print_derivations(derivations: Sequence[Derivation], laws: int, console: Console) -> None:
    """Print the table and the list of the rules that are not derived.

    Args:
        laws: how many rules they were to be derived from.
    """
    numbers = ("operands", "iterations", "e-nodes", "seconds")
    rows = table("rule", "derived", *numbers, "law", numbers=numbers)
    for derivation in derivations:
        rows.add_row(
            derivation.rule,
            "yes" if derivation.derived else "no",
            str(derivation.configurations),
            str(derivation.iterations),
            f"{derivation.e_nodes:,}",
            f"{derivation.seconds:.2f}",
            derivation.law,
        )
    console.print(rows)
    underived = [derivation for derivation in derivations if not derivation.derived]
    total_s = sum(derivation.seconds for derivation in derivations)
    console.print(
        f"{len(derivations) - len(underived)} of {_count_text(len(derivations))} "
        f"derived from {_count_text(laws)} in {total_s:.1f} s"
    )
    if underived:
        console.print("\nnot derived:")
    for derivation in underived:
        where = f", on {derivation.where}" if derivation.where else ""
        console.print(f"  {derivation.rule}: {derivation.reason}{where}")


def derivations_json(derivations: Sequence[Derivation]) -> dict[str, Any]:
    """Return all of it as one object."""
    return {
        "derived": sum(derivation.derived for derivation in derivations),
        "not_derived": [derivation.rule for derivation in derivations if not derivation.derived],
        "rules": [asdict(derivation) for derivation in derivations],
    }


def _count_text(count: int) -> str:
    return "1 rule" if count == 1 else f"{count} rules"


_MATCHES = """-- its matches: classes of its roots, and of the leaves of its sources
SELECT id, root0, root1, b FROM application ORDER BY id"""
_NONE = "-- it has no match, and runs no more than this"
_UNKNOWN = "-- no operands were found that satisfy its sources and conditions"


def rule_sql(rule: Rule, database: Path | None = None) -> str:
    """Return the statements of an iteration by a rule, as if it were the only one, and its matches.

    Searching, judging, building, uniting, rebuilding and the cycle filter: all that a run with the default
    options does. Decisions of the cycle filter outside SQL stand as lists in the statement after its query.

    In a run, one query finds all matches: rules whose sources have the same shape are one branch of it, and
    sources that begin alike share that join. Heads are numbered as a run meets them.

    Args:
        database: of a run: the statements are those on its e-graph, and run there as they are printed,
            which changes nothing but temporary copies. Else the e-graph has but the rule's sources.

    Raises:
        InputError: the database is not one of a run of this version.
    """
    from relational_tensat.explore.rule_run import CHANGED, run_on_database, run_on_sources

    recorded = run_on_sources(rule) if database is None else run_on_database(rule, database)
    parts = [_heading(rule, database)]
    if database is not None:
        copies = [f"CREATE TEMP TABLE {name} AS SELECT * FROM main.{name}" for name in CHANGED]
        parts += [";\n".join(copies) + ";"]
    parts += _statements(recorded) if recorded else [_UNKNOWN]
    return "\n\n".join(parts)


def _heading(rule: Rule, database: Path | None) -> str:
    from relational_tensat.explore.compile.compiled_rules import CompiledRules

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


#: Columns of a terminal that a list fits into.
_WIDTH = 100
#: The kernels that run for operators: see ``tensor.operators.traits.KERNELS``.
_AT_INFERENCE = {
    "nothing": "nothing", "view": "a view", "copy": "a copy", "compute": "a kernel",
}  # fmt: skip


def rule_operators() -> dict[str, Operator]:
    """Return the operators that rules may speak of, by name."""
    return {name: operator for name, operator in operators().items() if operator.in_rules}


def functions_json() -> list[dict[str, Any]]:
    """Return the functions as objects: name, params, meaning."""
    return [
        {"name": function.name, "params": list(function.params), "meaning": function.meaning}
        for function in functions().values()
    ]


def operators_json() -> list[dict[str, Any]]:
    """Return the operators as objects.

    Each has its name, its operands (fewest, most or null), its attributes, its kernels (see
    ``ops.base.KERNELS``) and its meaning.
    """
    return [
        {
            "name": name,
            "operands": list(operator.arity),
            "attributes": [
                {
                    "name": attr.name,
                    "kind": attr.kind,
                    "required": attr.default is REQUIRED,
                    "default": _json_default(attr),
                    "choices": list(attr.choices),
                }
                for attr in operator.attrs
            ],
            "kernel": operator.kernel,
            "meaning": _meaning(operator),
        }
        for name, operator in rule_operators().items()
    ]


def print_functions(console: Console) -> None:
    """Print every function: how it is called, and what it means."""
    rows = table("function", "meaning")
    for function in functions().values():
        rows.add_row(function.signature, function.meaning)
    console.print(rows)
    console.print(f"{len(functions())} functions")


def print_operators(console: Console) -> None:
    """Print every operator: meaning, operands, kernel, and attributes with their defaults."""
    operators_by_name = rule_operators()
    width = max(map(len, operators_by_name)) + 2
    for name, operator in operators_by_name.items():
        attributes = [_attribute(attr) for attr in operator.attrs]
        lines = [
            *wrap(_meaning(operator), _WIDTH - width),
            f"{_operands(operator)}; at inference: {_AT_INFERENCE[operator.kernel]}",
            *wrap(" ".join(attributes), _WIDTH - width, break_on_hyphens=False),
        ]
        for head, line in zip_longest((name,), lines, fillvalue=""):
            console.print(f"{head:<{width}}{line}")
    console.print(
        f"{len(operators_by_name)} operators; an attribute without a default has to be written"
    )


def _operands(operator: Operator) -> str:
    low, high = operator.arity
    if low == high:
        return f"{low} operand" if low == 1 else f"{low} operands"
    return f"{low} or more operands" if high is None else f"{low} to {high} operands"


def _json_default(attr: Attr) -> Any:
    """Return an attribute's default as JSON has it: infinite numbers as text."""
    if attr.default is REQUIRED:
        return None
    is_infinite = isinstance(attr.default, float) and math.isinf(attr.default)
    return constant_text(attr.default) if is_infinite else attr.default


def _attribute(attr: Attr) -> str:
    """Return an attribute as text: ``:axis int``, ``:act none|relu=none``, ``:pad padding=valid``."""
    kind = "|".join(map(str, attr.choices)) or attr.kind
    default = "" if attr.default is REQUIRED else f"={constant_text(attr.default)}"
    return f":{attr.name} {kind}{default}"


def _meaning(operator: Operator) -> str:
    """Return the first line of an operator's description."""
    return (type(operator).__doc__ or "").strip().partition("\n")[0]


def print_verdicts(results: Sequence[Verified], seconds: float, console: Console) -> None:
    """Print the table, the rules that only float64 supports, and the failures.

    Args:
        seconds: that all of it took.
    """
    rows = table(
        "rule",
        "verdict",
        "evidence",
        "instances",
        "ways",
        "seconds",
        numbers=("instances", "ways", "seconds"),
    )
    for result in results:
        verdict = result.verdict
        rows.add_row(
            verdict.rule,
            verdict.status,
            verdict.evidence,
            str(verdict.trials),
            str(verdict.shown.outcomes),
            f"{result.seconds:.2f}",
        )
    console.print(rows)
    _print_counts(results, seconds, console)
    for result in results:
        if result.verdict.status != "sound":
            _print_failure(result, console)


def verdicts_json(results: Sequence[Verified], seconds: float) -> dict[str, Any]:
    """Return all of it as one object; see ``print_verdicts``."""
    return {
        "seconds": round(seconds, 3),
        "sound": sum(result.verdict.status == "sound" for result in results),
        "failed": [result.verdict.rule for result in results if result.verdict.status != "sound"],
        "only_float64": only_float64(results),
        "rules": [_entry(result) for result in results],
    }


def only_float64(results: Sequence[Verified]) -> list[str]:
    """Return the names of the sound rules that hold for real numbers only, up to rounding."""
    return [
        result.verdict.rule
        for result in results
        if result.verdict.status == "sound" and result.verdict.evidence == "float64"
    ]


def _entry(result: Verified) -> dict[str, Any]:
    verdict = result.verdict
    example = verdict.counterexample
    return {
        "rule": verdict.rule,
        "verdict": verdict.status,
        "evidence": verdict.evidence,
        "instances": verdict.trials,
        "seconds": round(result.seconds, 3),
        "types": dict(verdict.types),
        "coverage": asdict(verdict.shown),
        "reason": verdict.reason,
        "counterexample": None if example is None else example.to_json(),
    }


def _print_counts(results: Sequence[Verified], seconds: float, console: Console) -> None:
    counts = {"sound": 0, "unsound": 0, "untested": 0}
    for result in results:
        counts[result.verdict.status] += 1
    totals = [f"{count} {status}" for status, count in counts.items() if count]
    rules = "1 rule" if len(results) == 1 else f"{len(results)} rules"
    console.print(f"{rules} in {seconds:.1f} s: {', '.join(totals) or 'nothing to verify'}")
    _print_ways(results, console)
    approximate = only_float64(results)
    if approximate:
        console.print(
            f"{len(approximate)} of them about real numbers, so compared in float64:"
            f" {', '.join(approximate)}"
        )
    console.print(
        f"in machine arithmetic: {len(proved(results))} proved on integers of every width,"
        f" {len(moderate(results))} on moderate floats only"
    )


def _print_ways(results: Sequence[Verified], console: Console) -> None:
    """Say which ways of the rules' decisions instances went."""
    shown = [result.verdict.shown for result in results]
    taken = sum(one.outcomes for one in shown)
    impossible = sum(len(one.impossible) for one in shown)
    line = f"ways that the rules decide between: {taken} taken by an instance"
    if impossible:
        line += f", {impossible} impossible, as z3 proves"
    missed = sum(len(one.missed) for one in shown)
    if missed:
        line += f", {missed} neither"
    if taken or missed:
        console.print(line)
    if importlib.util.find_spec("z3") is None:
        console.print(
            "z3 is not installed (pip install relational-tensat[proofs]): rare cases are not looked for,"
            " nothing is proved, and fewer rules pass"
        )


def proved(results: Sequence[Verified]) -> list[str]:
    """Return the names of the rules that are proved in every integer type that they are met in."""
    return [
        result.verdict.rule
        for result in results
        if any(dtype not in FLOAT_DTYPES for dtype in result.verdict.types)
        and all(
            evidence == "proved"
            for dtype, evidence in result.verdict.types.items()
            if dtype not in FLOAT_DTYPES
        )
    ]


def moderate(results: Sequence[Verified]) -> list[str]:
    """Return the names of the rules that hold for moderate floats only, in some element type."""
    return [
        result.verdict.rule for result in results if "moderate" in result.verdict.types.values()
    ]


def _print_failure(result: Verified, console: Console) -> None:
    verdict = result.verdict
    console.print(f"\n{verdict.rule} is {verdict.status}: {verdict.reason}")
    if verdict.counterexample is not None:
        console.print(verdict.counterexample.text(), end="")
