"""A kernel's statements as C for a processor has them: fewer of them, and fewer divisions.

A value that one sweep reads is worked out within it; a value that several read is stored if it is costly,
or the tile small. A quotient whose divisor has fewer elements is a product with its inverse: for any floats
the same but for rounding, as the inverse is scaled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from relational_tensat.mugraph.graph.mugraph import Operation
from relational_tensat.mugraph.graph.validity import BlockStage
from relational_tensat.mugraph.kernels.c_tiles import CpuTiles
from relational_tensat.mugraph.kernels.statements import (
    MAXIMA,
    Compute,
    Program,
    Reduce,
    Statement,
    StoredTensor,
)
from relational_tensat.tensor.spellings import SPELLINGS

#: A cheap value is worked out again if its tile has more elements: memory is slower then. A value of one
#: tensor only, and of smaller ones, is read as fast as a stored one.
_MOST_KEPT, _MOST_KEPT_OF_ONE = 8192, 2048
#: Its root is far from what has no inverse.
_LEAST_EPSILON = 1e-30
#: How many elements one is for at least that is worked out apart from them.
_FEWEST_READS = 4


def for_processor(program: Program, tiles: CpuTiles) -> Program:
    """Return a kernel of one block with the stores and divisions that are worth it."""
    return _with_inverses(_with_costly_stores(_with_fewer_stores(program, tiles), tiles), tiles)


def _with_fewer_stores(program: Program, tiles: CpuTiles) -> Program:
    for compute in reversed([each for each in _flat(program) if isinstance(each, Compute)]):
        formula = program.formulas[compute.operand]
        own = tiles.count(program.dims[compute.output])
        readers = [each for each in _flat(program) if compute.output in program.reads(each)]
        is_costly = formula.op in SPELLINGS and SPELLINGS[formula.op].is_costly
        if formula.op == "root" or compute.adds or compute.along:
            continue
        read = [tiles.count(program.dims[name]) for name in program.sources(compute.operand)]
        is_of_one = sum(count * 2 > own for count in read) == 1
        most_kept = _MOST_KEPT_OF_ONE if is_of_one else _MOST_KEPT
        if len(readers) > 1 and (is_costly or own <= most_kept):
            continue
        swept = [tiles.count(program.dims[name]) for each in readers for name in _swept(each)]
        if len(readers) == 1 and is_costly and own * 2 <= max(swept, default=0):
            continue
        program = replace(
            program,
            statements={
                stage: tuple(each for each in own_statements if each != compute)
                for stage, own_statements in program.statements.items()
            },
            stored={name: own for name, own in program.stored.items() if name != compute.output},
            formulas={
                **program.formulas, compute.output: replace(formula, output=compute.output)
            },
        )  # fmt: skip
    return program


def _with_costly_stores(program: Program, tiles: CpuTiles) -> Program:
    """Store what is costly and has fewer elements than what reads it."""
    for name, formula in list(program.formulas.items()):
        is_costly = formula.op in SPELLINGS and SPELLINGS[formula.op].is_costly
        own = tiles.count(program.dims[name])
        read = [
            tiles.count(program.dims[reader])
            for reader, each in program.formulas.items()
            if name in each.operands and reader in program.dims
        ]
        is_stored = any(isinstance(s, Compute) and s.operand == name for s in _flat(program))
        if is_costly and not is_stored and own * _FEWEST_READS <= max(read, default=0):
            made = f"{name} once"
            formulas = {**program.formulas, made: replace(formula, output=made)}
            del formulas[name]
            program = _stored_at_once(replace(program, formulas=formulas), name, made)
    return program


def _with_inverses(program: Program, tiles: CpuTiles) -> Program:
    for name, formula in list(program.formulas.items()):
        if formula.op != "div":
            continue
        x, y = formula.operands
        if tiles.count(program.dims[y]) * _FEWEST_READS > tiles.count(program.dims[name]):
            continue
        ops = ("reciprocal",) if _is_between(y, program) else ("inverse", "inverse_scale")
        parts = {f"{y} {op}": op for op in ops}
        product = Operation("mul" if len(parts) == 1 else "quotient", (x, *parts), name)
        program = replace(program, formulas={**program.formulas, name: product})
        for part, op in parts.items():
            if part not in program.stored:
                made = Operation(op, (y,), f"{part} of")
                formulas = {**program.formulas, made.output: made}
                program = _stored_at_once(replace(program, formulas=formulas), part, made.output)
    return program


def _is_between(name: str, program: Program) -> bool:
    """Whether a divisor is such that its inverse needs no scale: large enough, or 0, infinite or no number.

    A root mean square has its epsilon. A sum of exponentials of what a maximum was taken off has e^0.
    """
    root = _made(program, name)
    if root is not None:
        epsilon = root.attrs.get("epsilon", 0.0)
        return root.op == "root" and isinstance(epsilon, float) and epsilon >= _LEAST_EPSILON
    reduces = {each.output: each for each in _flat(program) if isinstance(each, Reduce)}
    total = reduces.get(name)
    if total is None or total.kind != "sum" or total.adds:
        return False
    power = _made(program, total.operand)
    difference = _made(program, power.operands[0]) if power and power.op == "exp" else None
    if difference is None or difference.op != "sub":
        return False
    x, most = difference.operands
    largest = reduces.get(most)
    return (
        largest is not None
        and largest.kind in MAXIMA
        and largest.operand == x
        and largest.over == total.over
    )


def _made(program: Program, name: str) -> Operation | None:
    """Return what gives a tensor, stored or not."""
    stored = {each.output: each.operand for each in _flat(program) if isinstance(each, Compute)}
    return program.formulas.get(stored.get(name, name))


def _stored_at_once(program: Program, name: str, formula: str) -> Program:
    """Return a kernel that stores a formula as soon as what it is of is there."""
    (operand,) = program.formulas[formula].operands
    dims = {**program.dims, name: program.dims[operand], formula: program.dims[operand]}
    stored = {**program.stored, name: StoredTensor(dims[name], is_wide=True)}
    statements, sources = list(_flat(program)), program.sources(operand)
    written = (n for n, each in enumerate(statements) if program.writes(each) & sources)
    statements.insert(max(written, default=-1) + 1, Compute(name, formula))
    stages = {BlockStage.INVARIANT: tuple(statements), BlockStage.LOOP: (), BlockStage.AFTER: ()}
    return replace(program, statements=stages, stored=stored, dims=dims)


def _flat(program: Program) -> Iterator[Statement]:
    """Yield the statements of a kernel of one block, in order."""
    for stage in (BlockStage.INVARIANT, BlockStage.LOOP, BlockStage.AFTER):
        yield from program.statements[stage]


def _swept(statement: Statement) -> list[str]:
    """Return the tensor whose elements a statement goes over."""
    name = getattr(statement, "operand", "") or getattr(
        getattr(statement, "saver", None), "tile", ""
    )
    return [name] if name else []
