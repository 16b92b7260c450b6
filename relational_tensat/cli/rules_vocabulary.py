"""The words of the rule language: the functions and the operators that rules may use."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from relational_tensat.cli.console import table
from relational_tensat.rules.functions import functions
from relational_tensat.rules.text import constant_text
from relational_tensat.tensor.operators import Attr, Operator, operators
from relational_tensat.tensor.operators.attributes import REQUIRED


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

    Each has its name, its operands (fewest, most or null), its attributes, what runs for it (see
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
                    "default": None if attr.default is REQUIRED else attr.default,
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
    """Print every operator: operands, attributes with their defaults, what runs for it, meaning."""
    rows = table("operator", "operands", "attributes", "runs", "meaning")
    operators_by_name = rule_operators()
    for name, operator in operators_by_name.items():
        attributes = " ".join(_attribute(attr) for attr in operator.attrs)
        rows.add_row(name, _operands(operator), attributes, operator.kernel, _meaning(operator))
    console.print(rows)
    console.print(
        f"{len(operators_by_name)} operators; an attribute without a default has to be written"
    )


def _operands(operator: Operator) -> str:
    low, high = operator.arity
    if low == high:
        return str(low)
    return f"{low} or more" if high is None else f"{low} to {high}"


def _attribute(attr: Attr) -> str:
    """Return an attribute as text: ``:axis int``, ``:act none|relu=none``, ``:pad padding=valid``."""
    kind = "|".join(map(str, attr.choices)) or attr.kind
    default = "" if attr.default is REQUIRED else f"={constant_text(attr.default)}"
    return f":{attr.name} {kind}{default}"


def _meaning(operator: Operator) -> str:
    """Return the first line of an operator's description."""
    return (type(operator).__doc__ or "").strip().partition("\n")[0]
