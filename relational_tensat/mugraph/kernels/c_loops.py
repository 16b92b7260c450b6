"""Loops of C around a kernel, whose sizes are arguments: a kernel of fixed sizes does one turn of them.

So what is within has the tiles and vectors of fixed sizes, whatever is outside of it. A turn's operands and
results begin elsewhere in memory, and lie as those of the kernel alone. No turn reads what another writes,
so any range of turns is a part of the work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from relational_tensat.mugraph.graph.dims import Dims, count
from relational_tensat.mugraph.kernels.statements import Text


@dataclass(frozen=True, slots=True)
class SizedLoops:
    """Loops over the outer dims of a kernel's operands and results.

    Attributes:
        number: how many loops there are.
        of: by tensor, the numbers of the loops over its dims, the outermost first. Results have them all.
    """

    number: int
    of: Mapping[str, tuple[int, ...]]


def looped(
    loops: SizedLoops, pointers: Mapping[str, str], lying: Mapping[str, Dims], body: str
) -> tuple[list[str], str]:
    """Return a function's parameters and body with loops around what one turn does.

    Args:
        loops: the loops.
        pointers: by tensor, the declaration of its pointer, as the body has it.
        lying: the dims of tensors within a turn.
        body: of one turn.
    """
    text, every = Text(), tuple(range(loops.number))
    for number in every:
        text.line(f"const long turns_{number} = (long)sizes[{number}];")
    text.line(f"const long turns = {' * '.join(f'turns_{number}' for number in every)};")
    text.line("const long last = turns * (part + 1) / parts;")
    with text.block("for (long turn = turns * part / parts; turn < last; ++turn) {"):
        rest = "turn"
        for number in reversed(every[1:]):
            text.line(f"const long turn_{number} = {rest} % turns_{number};")
            rest = f"{rest} / turns_{number}"
        text.line(f"const long turn_0 = {rest};")
        for tensor, pointer in pointers.items():
            name = _name(pointer)
            place = _place(loops.of[tensor], every)
            text.line(f"{pointer} = all_{name} + {place} * {count(lying[tensor])};")
        text.line(*body.splitlines())
    declared = [f"{each.removesuffix(_name(each))}all_{_name(each)}" for each in pointers.values()]
    return [*declared, "long part", "long parts", "const int64_t *sizes"], str(text)


def _name(pointer: str) -> str:
    return pointer.split()[-1]


def _place(own: tuple[int, ...], every: tuple[int, ...]) -> str:
    """Return which of a tensor's parts belongs to a turn."""
    if own == every:
        return "turn"
    place = "0"
    for number in own:
        index = f"turn_{number}"
        place = index if place == "0" else f"({place} * turns_{number} + {index})"
    return place
