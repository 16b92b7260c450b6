"""The kernels that there are: files under kernels/, the types each is compiled for, its parameters.

Parameters are read off the sources, the one place where they are written down. The numbers of operators are
those that the sources switch by.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from relational_tensat.base.errors import UsageError, nearest
from relational_tensat.tensor.spellings import BINARY, FUNCTIONS, definitions

#: ``activate`` in kernels/common.cuh.
ACTIVATION_CODES = {"none": 0, "relu": 1, "sigmoid": 2, "tanh": 3, "gelu_tanh": 4}

_FUNCTION_CODES = {op: each.number for op, each in FUNCTIONS.items() if each.number is not None}
#: ``unary`` in kernels/map.cu; gelu's tanh approximation is an operator of its own there.
UNARY_CODES = {
    **dict(sorted(_FUNCTION_CODES.items(), key=lambda item: item[1])),
    "gelu_tanh": 11, "clip": 12, "smul": 13,
}  # fmt: skip

#: ``binary`` in kernels/map.cu.
BINARY_CODES = {op: each.number for op, each in BINARY.items() if each.number is not None}

#: ``compare`` in kernels/map.cu.
COMPARISON_CODES = {"less": 0, "less_or_equal": 1, "equal": 2}

#: ``decide`` in kernels/map.cu.
LOGIC_CODES = {"logical_and": 0, "logical_or": 1, "logical_not": 2}

#: ``reduce_rows`` and ``reduce_columns`` in kernels/rows.cu.
REDUCTION_CODES = {
    "reduce_sum": 0, "reduce_mean": 1, "reduce_max": 2, "reduce_min": 3, "reduce_prod": 4,
}  # fmt: skip

#: ``pad`` in kernels/move.cu.
PAD_MODE_CODES = {"constant": 0, "reflect": 1, "edge": 2}

#: ``pool`` in kernels/window.cu.
POOL_CODES = {"max_pool": 0, "avg_pool": 1}

#: ``cast`` in kernels/move.cu; it has no 64-bit unsigned integers.
DTYPE_CODES = {
    "float32": 0, "float16": 1, "bfloat16": 2, "float64": 3, "int64": 4, "int32": 5, "int16": 6,
    "int8": 7, "uint32": 8, "uint16": 9, "uint8": 10, "bool": 11,
}  # fmt: skip

#: The element types that kernels compute with, as C++ spells them.
FLOAT_TYPES = {"float32": "float", "float16": "f16", "bfloat16": "bf16"}

#: The element type of kernels that move elements, by its size in bytes.
MOVED_TYPES = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "u128"}

#: How float32 is multiplied: ``fp32`` exactly, ``tf32`` with operands rounded to 10 bits of mantissa.
MATH_MODES = ("fp32", "tf32")


KERNEL_DIR = Path(__file__).resolve().parent / "kernels"

_FLOATS = tuple(FLOAT_TYPES.values())
_MOVED = tuple(MOVED_TYPES.values())
_NUMBERS = _MOVED[:-1]  # what a 64-bit number can be written into
_NO_TYPES = ("",)

#: Per file, the types that each of its kernels is compiled for; a file is one translation unit.
UNITS: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "map.cu": {
            **dict.fromkeys(("unary", "binary", "is_nan", "compare", "batch_norm"), _FLOATS),
            "decide": _NO_TYPES,
        },
        "move.cu": {
            **dict.fromkeys(("strided_copy", "transpose", "concat", "split", "gather"), _MOVED),
            **dict.fromkeys(("pad", "fill", "choose"), _NUMBERS),
            "cast": _NO_TYPES,
        },
        "rows.cu": dict.fromkeys(
            ("reduce_rows", "reduce_columns", "softmax", "layer_norm", "rms_norm"), _FLOATS
        ),
        "window.cu": dict.fromkeys(("pool", "depthwise"), _FLOATS),
        "product.cu": dict.fromkeys(("gemm_simt", "gemm_mma"), _FLOATS),
        "convolution.cu": dict.fromkeys(("conv_simt", "conv_mma"), _FLOATS),
    }
)
#: Where a file has what ``tensor.spellings`` says.
_SIGMOID_PLACE, _CASES_PLACE = "// sigmoid\n", "    // functions of one element\n"

#: The headers of all units.
HEADERS = ("common.cuh", "tiles.cuh")

_KERNEL = re.compile(
    r"__global__\s+void\s+(?:__launch_bounds__\(\d+\)\s+)?(\w+)\(([^)]*)\)", re.MULTILINE
)
_PARAMETER = re.compile(
    r"(?:const )?(?P<type>\w+)(?:<(?P<count>\d+)>)?\s*(?P<pointer>\*?)\s*(?P<name>\w+)"
)
_FORMATS = {"i64": "q", "u64": "Q", "f64": "d", "Sizes": "q", "Pointers": "Q"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel.

    Attributes:
        format: ``struct``'s letter of one number: Q for addresses, q for integers, d for floats.
        count: how many numbers it is; None for a single one.
    """

    name: str
    format: str
    count: int | None


@dataclass(frozen=True, slots=True)
class KernelSignature:
    """A kernel's parameters, in order, and the file that it is in."""

    name: str
    unit: str
    parameters: tuple[Parameter, ...]

    @property
    def format(self) -> str:
        """All parameters as ``struct`` packs them; each is of 8 bytes, so nothing is padded."""
        return "".join(parameter.format * (parameter.count or 1) for parameter in self.parameters)


def read_source(file: str) -> str:
    """Return the text of a file under kernels/, with the functions of ``tensor.spellings`` spelled out."""
    text = (KERNEL_DIR / file).read_text(encoding="utf-8")
    common = definitions("CALLED float", ("sigmoid",), exp="expf", erf="erff")
    return text.replace(_SIGMOID_PLACE, common).replace(_CASES_PLACE, _cases())


def _cases() -> str:
    """Return the cases of functions of one element; they call the headers' definitions."""
    lines = []
    for name, number in UNARY_CODES.items():
        if (spelling := FUNCTIONS.get(name)) is not None:
            is_called = not spelling.body or name == "sigmoid"
            value = spelling.c.format("x") if is_called else spelling.body.format(erf="erff")
            value = value[1:-1] if value.startswith("(") else value
            lines.append(f"    case {number}: return {value};\n")
    return "".join(lines)


@cache
def signatures() -> Mapping[str, KernelSignature]:
    """Return the signature of every kernel in ``UNITS``, by name without its type."""
    by_name = {}
    for unit in UNITS:
        for name, parameters in _KERNEL.findall(read_source(unit)):
            texts = re.sub(r"\s+", " ", parameters).split(",")
            by_name[name] = KernelSignature(name, unit, tuple(_parameter(text) for text in texts))
    return MappingProxyType(by_name)


def signature_of(kernel: str) -> KernelSignature:
    """Return the signature of a kernel by its full name, e.g. ``unary<float>``.

    Raises:
        UsageError: there is no such kernel; names the nearest.
    """
    by_name = signatures()
    name = kernel.partition("<")[0]
    if name not in by_name or kernel not in instances(by_name[name].unit):
        every = [instance for unit in UNITS for instance in instances(unit)]
        raise UsageError(f"there is no kernel {kernel!r}{nearest(kernel, every)}")
    return by_name[name]


@cache
def instances(unit: str) -> tuple[str, ...]:
    """Return the full names of all kernels of a unit."""
    return tuple(
        f"{name}<{kind}>" if kind else name for name, kinds in UNITS[unit].items() for kind in kinds
    )


def _parameter(text: str) -> Parameter:
    match = _PARAMETER.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"a kernel's parameter {text.strip()!r} cannot be read")
    kind = "Pointers" if match["pointer"] else match["type"]
    count = int(match["count"]) if match["count"] else None
    return Parameter(match["name"], _FORMATS[kind], count)
