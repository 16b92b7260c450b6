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
        "instead of --for: what costs are from: analytic:PROFILE (a name or a .toml file), cpu or cuda "
        "(measured here; "
        "cpu:all with onnxruntime's own optimizations, cpu:threads=4 and cpu:all:threads=4 with several "
        "threads, as analytic:cpu:threads=4; cuda:tf32 on tensor cores), table:TABLE (a name or a .parquet "
        "file); a profile or table alone, too",
        name="cost",
        metavar="SOURCE",
        default_text="what --for decides",
    )
    cache: Path | None = option(
        None, "keep measured costs here", name="cost_cache", metavar="FILE",
        default_text="in the user's cache folder", may_change=True, writes="database",
    )  # fmt: skip
    measure_time_limit_s: float | None = option(
        None,
        "seconds of measuring single operators, where --cost measures; costs that are asked for after them "
        "are estimated",
        metavar="S",
        default_text="40 for a run and all that repeat it",
    )
    learn_costs: bool = option(
        True,
        "take measured costs as they are: without it, they are corrected by what earlier races of whole "
        "graphs said about each kind of kernel, and what they say is kept in the cache",
    )
    end_to_end: bool = option(
        True,
        "with --cost cpu and cuda, go by the sums of single operators: without it, original and optimized "
        "graph are run whole on the device as well, in turn (some 5 s), and the original is written where "
        "it is faster beyond the noise",
        former=("whole",),
    )
    budget_s: float | None = option(
        None,
        "seconds of racing the cheapest graphs that differ against the original, whole, by onnxruntime's "
        "defaults: the fastest is written, unless it is slower than the original; graphs whose times are "
        "in the cache do not race again",
        metavar="S",
        default_text="with --cost cpu 60 for a run and all that repeat it, or less where one would else "
        "take over 120; 10 with modelled costs and --effort normal; 20 of quantized models with --target "
        "onnxruntime; else 0",
    )
    min_speedup: float = option(
        1.0,
        "write the original unless the result is more than X times as fast, as measured or else as "
        "modelled; at 1, measured to be faster is enough, modelled to take 0.1 % less, or a smaller file "
        "that is not slower",
        metavar="X",
        minimum=1,
    )
    race_again: bool = option(
        False, "let graphs race again whose times are in the cache; the new times take their place"
    )
