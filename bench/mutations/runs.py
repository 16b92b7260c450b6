"""Giving damaged files to the command line: every exit code but "internal error" is right."""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from bench.mutations.mutate import mutated
from relational_tensat.cli.main import main

#: The exit code of what the program did not expect.
INTERNAL_ERROR = 1
#: One in so many models is not only read and written but optimized, which takes half a second.
_RUN_EVERY = 12
#: Mutations are shared out so: most of what can go wrong is in models; a database takes long to open.
_SHARES = {"windows": 30, "shapes": 30, "branches": 20, "json": 20, "rules": 30, "database": 3}


@dataclass(frozen=True, slots=True)
class Failure:
    """A command that ended in an internal error, or reported nothing or too much about what is wrong."""

    name: str
    index: int
    arguments: tuple[str, ...]
    code: int
    text: str


@dataclass
class Outcomes:
    """What became of all mutations: how often each exit code came, and what should not have."""

    codes: Counter[int] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)


def run_mutations(
    seeds: Mapping[str, tuple[Path, str]], folder: Path, count: int, seed: int
) -> Outcomes:
    """Damage the files and run commands on each, in this process.

    Args:
        seeds: path and kind of damage of valid files, by name.
        folder: for the damaged files and what is made of them.
        count: how many mutations altogether.
    """
    outcomes = Outcomes()
    names = random.Random(seed).choices([*_SHARES], [*_SHARES.values()], k=count)
    for index, name in enumerate(names):
        path, kind = seeds[name]
        rng = random.Random(f"{seed}:{index}:{name}")
        damaged = folder / f"damaged{path.suffix}"
        damaged.write_bytes(mutated(path.read_bytes(), kind, rng))
        for arguments in _commands(damaged, folder, index, seeds):
            code, text = run_command(arguments)
            outcomes.codes[code] += 1
            if code == INTERNAL_ERROR or (code and len(text.splitlines()) != 1):
                outcomes.failures.append(Failure(name, index, tuple(arguments), code, text))
    return outcomes


def run_command(arguments: list[str]) -> tuple[int, str]:
    """Run a command line in this process; return its exit code and what it wrote to stderr."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(arguments)
    return code, err.getvalue()


def _commands(
    damaged: Path, folder: Path, index: int, seeds: Mapping[str, tuple[Path, str]]
) -> Iterator[list[str]]:
    """Yield the command lines that read a damaged file."""
    file, output = str(damaged), str(folder / f"out{(index % 2) * '.json' or '.onnx'}")
    search = ["--iterations", "1", "--time-limit", "2", "--allow-unsound", "--quiet"]
    run = index % _RUN_EVERY == 0
    match damaged.suffix:
        case ".rules":
            yield ["rules", "check", file]
            if run:
                model = str(seeds["windows"][0])
                yield ["run", model, "-o", output, "--rules", file, *search]
        case ".duckdb":
            yield ["inspect", file, "--json"]
            yield ["explain", file]
            yield ["sql", file, "SELECT count(*) FROM enode"]
            yield ["run", "--resume", file, "-o", output, "--quiet"]
        case _:
            yield ["convert", file, output]
            if run:
                rules = str(seeds["rules"][0])
                yield ["run", file, "-o", output, "--rules", rules, *search]
