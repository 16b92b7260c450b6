"""Small parts of emitted CUDA: names of what is stored, types, conditions."""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.mugraph.kernels.lowering.names import identifier


@dataclass(frozen=True, slots=True)
class OperandText:
    """A product's operand: its tile, the function of places in it, and how it is read there."""

    tile: str
    index: str
    reading: str


def shared(name: str) -> str:
    """Return what a tensor in shared memory is called."""
    return f"tile_{identifier(name)}"


def registers(name: str) -> str:
    """Return what a product in registers is called."""
    return f"sums_{identifier(name)}"


def type_of(is_wide: bool, is_condition: bool = False) -> str:
    """Return the type of elements: float, or the kernel's; of bools in device memory, bytes."""
    return "u8" if is_condition else "float" if is_wide else "T"


def if_any(condition: str, value: str, none: str = "0.0f") -> str:
    """Return a value where a condition holds, if there is one."""
    return f"({condition} ? {value} : {none})" if condition else value
