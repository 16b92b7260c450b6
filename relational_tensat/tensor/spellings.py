"""How the languages of kernels spell element-wise operators: one table, which all of them read.

Its readers: expressions of Triton and C, functions that CUDA and C call (``fused.cuh``, ``functions.h``,
``gpu/kernels``), the numbers of GPU kernels (``gpu.catalogue``), and the arithmetic of μGraphs in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from relational_tensat.base.records import record
from relational_tensat.tensor.floats import erf
from relational_tensat.tensor.operators.traits import activate


@record
class Spelling:
    """An element-wise operator in each language.

    Attributes:
        c: in C and CUDA; ``{}`` are the operands, ``{value}`` is a number beside them.
        triton: likewise in Triton.
        numpy: on arrays of floats; None where ``Arithmetic`` has a method of its own.
        body: the value of the function of this name that C and CUDA call, of x and perhaps y; ``{exp}`` and
            ``{erf}`` are the target's names of these. Empty: they call none of this name.
        number: of its case in gpu/kernels/map.cu (``bend_one``, ``join``); None: it has none.
        is_costly: it takes tens of instructions.
        keeps_zero: it is 0 of 0.
    """

    c: str
    triton: str
    numpy: Callable[..., Any] | None = None
    body: str = ""
    number: int | None = None
    is_costly: bool = False
    keeps_zero: bool = False


#: Of one element.
FUNCTIONS: Mapping[str, Spelling] = {
    "abs": Spelling("fabsf({})", "tl.abs({})", np.abs, number=7, keeps_zero=True),
    "exp": Spelling("expf({})", "tl.exp({})", np.exp, number=3, is_costly=True),
    "erf": Spelling("erff({})", "tl.erf({})", erf, number=5, is_costly=True, keeps_zero=True),
    "gelu": Spelling(
        "gelu({})", "0.5 * {0} * (1.0 + tl.erf({0} * 0.7071067811865476))",
        lambda x: np.asarray(0.5 * x * (1.0 + erf(x / np.sqrt(2.0)))),
        "0.5f * x * (1.0f + {erf}(x * 0.70710678f))", 10, is_costly=True, keeps_zero=True,
    ),
    "log": Spelling("logf({})", "tl.log({})", np.log, number=8, is_costly=True),
    "nan_to_zero": Spelling(
        "nan_to_zero({})", "tl.where({0} == {0}, {0}, 0.0)",
        lambda x: np.where(np.isnan(x), 0, x), "x == x ? x : 0.0f",
    ),
    "neg": Spelling("(-{})", "-{}", np.negative, number=6, keeps_zero=True),
    "reciprocal": Spelling("(1.0f / {})", "1.0 / {}", np.reciprocal, number=9),
    "relu": Spelling(
        "relu({})", "tl.where({0} < 0.0, 0.0, {0})", lambda x: np.maximum(x, 0),
        "x < 0.0f ? 0.0f : x", 0, keeps_zero=True,
    ),
    "sigmoid": Spelling(
        "sigmoid({})", "1.0 / (1.0 + tl.exp(-{}))", lambda x: activate("sigmoid", x),
        "1.0f / (1.0f + {exp}(-x))", 1, is_costly=True,
    ),
    "silu": Spelling(
        "silu({})", "{0} / (1.0 + tl.exp(-{0}))", lambda x: x * activate("sigmoid", x),
        "x / (1.0f + {exp}(-x))", is_costly=True, keeps_zero=True,
    ),
    "sqrt": Spelling("sqrtf({})", "tl.sqrt({})", np.sqrt, number=4, is_costly=True, keeps_zero=True),
    "square": Spelling("square({})", "{0} * {0}", np.square, "x * x", keeps_zero=True),
    "tanh": Spelling(
        "tanhf({})", "2.0 / (1.0 + tl.exp(-2.0 * {})) - 1.0", np.tanh, number=2, is_costly=True,
        keeps_zero=True,
    ),
}  # fmt: skip

#: Of two elements.
BINARY: Mapping[str, Spelling] = {
    "add": Spelling("({} + {})", "{} + {}", number=0),
    "sub": Spelling("({} - {})", "{} - {}", number=1),
    "mul": Spelling("({} * {})", "{} * {}", number=2),
    "div": Spelling("({} / {})", "{} / {}", number=3),
    "pow": Spelling("powf({}, {})", "_power({}, {})", number=4, is_costly=True),
    "div_or_zero": Spelling(
        "div_or_zero({}, {})", "tl.where(({1} == {1}) & ({1} != 0.0), {0} / {1}, 0.0)",
        body="y == y && y != 0.0f ? x / y : 0.0f",
    ),
}  # fmt: skip

#: Comparisons, as they stand between two elements.
COMPARISONS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "less": ("<", np.less),
    "less_or_equal": ("<=", np.less_equal),
    "equal": ("==", np.equal),
    "greater": (">", np.greater),
    "greater_or_equal": (">=", np.greater_equal),
}

#: All that kernels have; of comparisons 1 or 0, of two elements or of one and a number.
SPELLINGS: Mapping[str, Spelling] = {
    **FUNCTIONS,
    **BINARY,
    "power": Spelling(
        "powf({}, {value})", "_power({0}, tl.full({0}.shape, {value}, tl.float32))", is_costly=True
    ),
    "keep": Spelling("({} != 0.0f ? {} : {value})", "tl.where({} != 0.0, {}, {value})"),
    **{
        prefix + name: Spelling(
            f"({{}} {sign} {other} ? 1.0f : 0.0f)", f"tl.where({{}} {sign} {other}, 1.0, 0.0)"
        )
        for prefix, other in (("", "{}"), ("is_", "{value}"))
        for name, (sign, _) in COMPARISONS.items()
    },
}


def definitions(prefix: str, names: Iterable[str], *, exp: str, erf: str) -> str:
    """Return the functions of some names that C and CUDA call, a line each.

    Args:
        prefix: the text before a function's name.
        exp, erf: the target's names of these.
    """
    lines = []
    for name in names:
        body = SPELLINGS[name].body.format(exp=exp, erf=erf)
        parameters = "float x, float y" if "y" in body else "float x"
        lines.append(f"{prefix} {name}({parameters}) {{ return {body}; }}\n")
    return "".join(lines)
