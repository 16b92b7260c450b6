"""What can be chosen for costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from relational_tensat.base.option import OptionGroup, option


@dataclass(frozen=True, slots=True)
class CostOptions(OptionGroup):
    """What costs are from; see ``cost.opening``."""

    source: str | None = option(
        None,
        "the source of costs, instead of --for: a profile (t4, a100, …, a .toml file, cpu:threads=4 as "
        "analytic:cpu:threads=4), measured here (cpu, cpu:all with onnxruntime's own optimizations, "
        "cpu:threads=4, cuda, cuda:tf32), or a recorded table (table:NAME, a .parquet file)",
        name="cost",
        metavar="SOURCE",
        default_text="what --for decides",
    )
    cache: Path | None = option(
        None, "the file that keeps measured costs", name="cost_cache", metavar="FILE",
        default_text="in the user's cache folder", may_change=True, writes="database",
    )  # fmt: skip
    measure_time_limit_s: float | None = option(
        None,
        "seconds of measuring single operators, if --cost measures; later costs are estimated",
        metavar="S",
        default_text="40 for a run and all that repeat it",
        is_rare=True,
    )
    learn_costs: bool = option(
        True,
        "take measured costs as they are, not corrected by what earlier races of whole graphs said about "
        "each kind of kernel",
        is_rare=True,
    )
    end_to_end: bool = option(
        True,
        "with --cost cpu and cuda, go by the sums of single operators; original and optimized graph do not "
        "run whole on the device (some 5 s) to see which is faster",
        former=("whole",),
        is_rare=True,
    )
    budget_s: float | None = option(
        None,
        "seconds of timing the cheapest graphs, whole, against the original in onnxruntime; the fastest is "
        "written, or the original if that is faster; graphs with times in the cache are not timed again",
        metavar="S",
        default_text="10 with --effort normal; with --cost cpu 60 for a run and all that repeat it, less "
        "if the run would take over 120; 20 of quantized models with --backend onnxruntime; else 0",
    )
    min_speedup: float = option(
        1.0,
        "write the original unless the result is more than X times as fast, measured or else modelled; "
        "at 1, any measured gain is enough, or 0.1 % modelled, or a smaller file that is not slower",
        metavar="X",
        minimum=1,
    )
    race_again: bool = option(
        False,
        "time graphs again whose times are in the cache, and replace these",
        is_rare=True,
    )
