"""Everything that can be chosen for a run, with its defaults and its checks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from relational_tensat.base.checks import check_at_least, check_choice, check_memory_limit
from relational_tensat.base.errors import UsageError

CYCLE_FILTERS = ("efficient", "vanilla", "none")
MULTI_SCHEDULES = ("saturated", "first")
EXTRACTORS = ("ilp", "greedy-dag", "greedy", "greedy-dag-sql", "greedy-sql")
ILP_CYCLES = ("auto", "order", "cuts", "real", "int", "none")
BLOCKS = ("auto", "always", "never")


@dataclass(frozen=True, slots=True)
class Options:
    """The choices of one run; checked when made.

    Attributes:
        rules: rule files or folders; empty for the rules that ship.
        only: names of the rules to use, all others left out; empty for all.
        skip: names of rules to leave out.
        allow_unsound: take rules that are not known to be sound, and verify none.
        iterations: at most so many iterations of exploration.
        multi_iterations: in how many of them the multi-pattern rules take part.
        multi_schedule: which iterations these are, one of ``MULTI_SCHEDULES``: the first, or the
            first and each in which the single-pattern rules have nothing left to add.
        node_limit: at most so many e-nodes.
        time_limit_s: of exploration.
        memory_limit: of the database, e.g. ``"2GB"``; None for 80 % of the machine's.
        temp_directory: where what does not fit into it goes; None for a folder beside ``db``, or the
            system's for temporary files.
        cycle_filter: one of ``CYCLE_FILTERS``.
        semi_naive: match only what changed since the last iteration; False for comparison.
        blocks: whether blocks that recur are explored once and what is found is copied to the others,
            one of ``BLOCKS``: where it is worthwhile, wherever some block recurs, or never.
        extractor: one of ``EXTRACTORS``.
        ilp_cycles: how the ILP is kept acyclic, one of ``ILP_CYCLES``.
        extract_time_limit_s: of extraction.
        without: techniques of the ILP (``extract.TECHNIQUES``) to do without, for comparison.
        extract_every: extract after each so many iterations of exploration as well; 0 for never. These
            extractions together may take as long as exploration has, and half a second each anyway.
        stop_unmoved: explore no further when so many of them in a row find nothing cheaper than was
            known; 0 for never.
        cost: what costs are from: ``analytic:PROFILE``, ``cpu``, ``cuda``, ``table:TABLE``, or a profile
            alone; see ``cost.opening``.
        cost_cache: the file that keeps measured costs; None for the user's own.
        whole: with costs measured here, time the original and the optimized graph whole, and return the
            original where it is faster beyond the noise; False to go by the sums of single operators.
        dims: sizes of the model's dynamic dimensions, by name.
        inputs: NumPy files (``.npy``) to verify with, by graph input.
        verify_runs: random inputs per set of weights in verification; None for 2, or 1 for graphs
            of over 5 Gflop.
        db: where the e-graph's database is kept; None for in memory.
        seed: of everything drawn at random.
        threads: of the database and of the solver.

    Raises:
        UsageError: a value that does not exist or cannot be; names the nearest.
    """

    rules: tuple[Path, ...] = ()
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    allow_unsound: bool = False
    iterations: int = 15
    multi_iterations: int = 1
    multi_schedule: str = "first"
    node_limit: int = 50_000
    time_limit_s: float = 60.0
    memory_limit: str | None = None
    temp_directory: Path | None = None
    cycle_filter: str = "efficient"
    semi_naive: bool = True
    blocks: str = "auto"
    extractor: str = "ilp"
    ilp_cycles: str = "auto"
    extract_time_limit_s: float = 60.0
    without: tuple[str, ...] = ()
    extract_every: int = 0
    stop_unmoved: int = 0
    cost: str = "t4"
    cost_cache: Path | None = None
    whole: bool = True
    dims: Mapping[str, int] = field(default_factory=dict)
    inputs: Mapping[str, Path] = field(default_factory=dict)
    verify_runs: int | None = None
    db: Path | None = None
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        check_choice("cycle filter", self.cycle_filter, CYCLE_FILTERS)
        check_choice("multi-pattern schedule", self.multi_schedule, MULTI_SCHEDULES)
        check_choice("use of recurring blocks", self.blocks, BLOCKS)
        check_choice("extractor", self.extractor, EXTRACTORS)
        check_choice("treatment of cycles in the ILP", self.ilp_cycles, ILP_CYCLES)
        for name, least in (
            ("iterations", 0), ("multi_iterations", 0), ("node_limit", 1),
            ("seed", 0), ("threads", 1), ("extract_every", 0), ("stop_unmoved", 0),
        ):  # fmt: skip
            check_at_least(name, getattr(self, name), least)
        if self.stop_unmoved and not self.extract_every:
            raise UsageError(
                f"stop_unmoved = {self.stop_unmoved} without extract_every, expected both: "
                "what does not move is what is extracted in between"
            )
        if self.verify_runs is not None:
            check_at_least("verify_runs", self.verify_runs, 1)
        for name, limit in (
            ("time_limit_s", self.time_limit_s),
            ("extract_time_limit_s", self.extract_time_limit_s),
        ):
            if not math.isfinite(limit) or limit <= 0:
                raise UsageError(f"{name} = {limit!r}, expected a positive number of seconds")
        if self.memory_limit is not None:
            check_memory_limit(self.memory_limit)
        for dimension, size in self.dims.items():
            check_at_least(f"the dimension {dimension!r}", size, 1)
