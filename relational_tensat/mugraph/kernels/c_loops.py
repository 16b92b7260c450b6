"""Loops of C around a kernel, whose sizes are arguments: a kernel of fixed sizes does one turn of them.

So the code within has the tiles and vectors of fixed sizes, for all sizes outside of it. A turn's operands
and results begin elsewhere in memory, and lie as those of the kernel alone. No turn reads what another
writes, so any range of turns is a part of the work.

Where all dims are loops, a turn is a block of elements that lie side by side, of whichever rows. The last
block may have fewer: it goes through memory of its own.
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
        block: how many elements of all loops together one turn computes; 0 where it is one of each loop.
    """

    number: int
    of: Mapping[str, tuple[int, ...]]
    block: int = 0


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
    total = " * ".join(f"turns_{number}" for number in every)
    if loops.block:
        text.line(f"const long elements = {total};")
        total = f"(elements + {loops.block - 1}) / {loops.block}"
    text.line(f"const long turns = {total};")
    text.line("const long last = turns * (part + 1) / parts;")
    with text.block("for (long turn = turns * part / parts; turn < last; ++turn) {"):
        write = _write_block if loops.block else _write_turn
        write(text, loops, pointers, lying, body)
    return _declared(pointers), str(text)


def _write_turn(
    text: Text, loops: SizedLoops, pointers: Mapping[str, str], lying: Mapping[str, Dims], body: str
) -> None:
    every, rest = tuple(range(loops.number)), "turn"
    for number in reversed(every[1:]):
        text.line(f"const long turn_{number} = {rest} % turns_{number};")
        rest = f"{rest} / turns_{number}"
    text.line(f"const long turn_0 = {rest};")
    for tensor, pointer in pointers.items():
        name = _name(pointer)
        place = _place(loops.of[tensor], every)
        text.line(f"{pointer} = all_{name} + {place} * {count(lying[tensor])};")
    text.line(*body.splitlines())


def _write_block(
    text: Text, loops: SizedLoops, pointers: Mapping[str, str], lying: Mapping[str, Dims], body: str
) -> None:
    """Write a turn that computes a block, of which the last has fewer elements."""
    block, whole = loops.block, [own for tensor, own in pointers.items() if loops.of[tensor]]
    assert all(count(lying[tensor]) == block for tensor in pointers if loops.of[tensor])
    text.line(f"const long first = turn * {block}, own = fewer({block}, elements - first);")
    for pointer in pointers.values():
        name = _name(pointer)
        text.line(f"{pointer} = all_{name}{' + first' if pointer in whole else ''};")
    for pointer in whole:
        kind = pointer.removeprefix("const ").partition(" *")[0]
        text.line(f"{kind} rest_{_name(pointer)}[{block}];")
    with text.block(f"if (own < {block}) {{"):
        for pointer in whole:
            name = _name(pointer)
            if pointer.startswith("const "):
                text.line(f"memset(rest_{name}, 0, sizeof rest_{name});")
                text.line(f"memcpy(rest_{name}, {name}, own * sizeof *{name});")
            text.line(f"{name} = rest_{name};")
    text.line(*body.splitlines())
    with text.block(f"if (own < {block}) {{"):
        for name in (_name(each) for each in whole if not each.startswith("const ")):
            text.line(f"memcpy(all_{name} + first, rest_{name}, own * sizeof *{name});")


def _declared(pointers: Mapping[str, str]) -> list[str]:
    declared = [f"{each.removesuffix(_name(each))}all_{_name(each)}" for each in pointers.values()]
    return [*declared, "long part", "long parts", "const int64_t *sizes"]


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
