"""The types of ``ops`` and ``fn``, from what operators and functions say of themselves.

``python -m relational_tensat.rules.builder.stubs`` writes them.
"""

from __future__ import annotations

from pathlib import Path

from relational_tensat.rules.builder.fn import python_name
from relational_tensat.rules.functions import functions
from relational_tensat.rules.functions.registry import Function
from relational_tensat.tensor.operators import Attr, Operator, operators
from relational_tensat.tensor.operators.attributes import REQUIRED

_TYPES = {
    "int": "int", "number": "float", "float": "float", "str": "str", "bool": "bool",
    "ints": "tuple[int, ...]", "floats": "tuple[float, ...]", "dtype": "str",
    "padding": "str | tuple[int, ...]", "any": "AttrValue",
}  # fmt: skip


def stubs() -> dict[str, str]:
    """Return the text of each stub file, by name."""
    ops = ["from relational_tensat.rules.builder.expressions import Choice, Tensor, Value", ""]
    rule_operators = {name: operator for name, operator in operators().items() if operator.in_rules}
    ops += [_operator(name, operator) for name, operator in rule_operators.items()]
    values = [
        "from relational_tensat.rules.builder.expressions import Choice, Tensor, Value",
        "from relational_tensat.tensor.types import AttrValue",
        "",
        "def python_name(function: str) -> str: ...",
    ]
    values += [_function(function) for function in functions().values()]
    head = "# Written by relational_tensat.rules.builder.stubs.\n# fmt: off\n# ruff: noqa"
    return {
        "ops.pyi": "\n".join([head, *ops, ""]),
        "fn.pyi": "\n".join([head, *values, ""]),
    }


def _operator(name: str, operator: Operator) -> str:
    low, high = operator.arity
    params = [f"operand_{i}: Tensor" for i in range(1, low + 1)]
    if high is None:
        params = ["*operands: Tensor"]
    else:
        params += [f"operand_{i}: Tensor = ..." for i in range(low + 1, high + 1)]
        params += ["/"] * (high > 0) + ["*"] * bool(operator.attrs)
    params += [_attribute(attr) for attr in operator.attrs]
    return f"def {name}({', '.join(params)}) -> Tensor: ..."


def _attribute(attr: Attr) -> str:
    default = "" if attr.default is REQUIRED else " = ..."
    return f"{attr.name}: Value | Choice | {_TYPES[attr.kind]}{default}"


def _function(function: Function) -> str:
    params = []
    for index, kind in enumerate(function.params):
        plain = kind.removesuffix("...")
        type_ = "Tensor" if plain == "tensor" else f"Value | Choice | {_TYPES[plain]}"
        params.append(f"argument_{index + 1}: {type_}")
        if kind != plain:
            params += ["/", f"*arguments: {type_}"]
        elif index + 1 == len(function.params):
            params.append("/")
    return f"def {python_name(function.name)}({', '.join(params)}) -> Value: ..."


if __name__ == "__main__":
    for name, text in stubs().items():
        Path(__file__).with_name(name).write_text(text, encoding="utf-8")
