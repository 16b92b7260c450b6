"""``python -m bench blocks``: what it saves to explore recurring blocks once, and that nothing is lost."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from bench.blocks.measure import BlocksRun, Case, as_json, measure
from bench.common.arguments import add_cost, add_save
from bench.common.saving import RESULTS, report_saved, save_result
from relational_tensat.base.errors import UsageError
from relational_tensat.cost import load_profile
from relational_tensat.explore import ExplorationOptions
from relational_tensat.rules.library import load_rules

#: The last ones are larger than the default node limit.
CASES = (
    Case("vit_huge", 1), Case("vit_huge", 2),
    Case("transformer_100", 1), Case("transformer_100", 2),
    Case("transformer_1000", 1, 1_000_000), Case("vit_huge", 3, 1_000_000),
)  # fmt: skip
MODES = ("never", "always")
_COLUMNS = (
    "model", "k", "blocks", "e-nodes", "e-classes", "stopped", "explore cpu s", "explore s",
    "extract cpu s", "cost us", "gap",
)  # fmt: skip


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("blocks", help="recurring blocks explored once, and without that")
    parser.add_argument(
        "cases", nargs="*", metavar="MODEL:K[:NODE_LIMIT]",
        help="a model of `bench models`, or transformer_N; [six cases]",
    )  # fmt: skip
    add_cost(parser)
    parser.add_argument(
        "--time-limit", metavar="S", type=float, default=60.0, help="of one exploration (60)"
    )
    parser.add_argument(
        "--extract-time-limit", metavar="S", type=float, default=20.0,
        help="of one extraction; 0: none (20)",
    )  # fmt: skip
    parser.add_argument(
        "--repeat", metavar="N", type=int, default=1,
        help="explore N times in turn, and take the fastest (1); what is larger than usual, once",
    )  # fmt: skip
    add_save(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure and print all cases; return 4 where two saturated e-graphs of a case differ in size.

    Raises:
        UsageError: a case or profile that does not exist.
    """
    check_repeat(options.repeat)
    cases = [parse_case(text) for text in options.cases] or CASES
    for case in cases:
        case.build()
    rules, cost = load_rules(), load_profile(options.cost)
    print("  ".join(f"{name:>15}" for name in _COLUMNS), flush=True)
    runs: list[BlocksRun] = []
    for case in cases:
        rounds = [
            [
                measure(
                    case,
                    mode,
                    rules,
                    cost,
                    time_limit_s=options.time_limit,
                    extract_time_limit_s=options.extract_time_limit if is_last else 0.0,
                )
                for mode in MODES
            ]
            for is_last in [False] * (_times(case, options.repeat) - 1) + [True]
        ]
        for fastest_run in map(fastest, zip(*rounds, strict=True)):
            runs.append(fastest_run)
            print(_line(fastest_run), flush=True)
            if fastest_run.reused is not None:
                print(f"    {fastest_run.reused.text}", flush=True)
    if options.save:
        report_saved(save(runs, options, RESULTS))
    different = differences(runs)
    for text in different:
        print(text)
    return 4 if different else 0


def _times(case: Case, repeat: int) -> int:
    return repeat if case.node_limit <= ExplorationOptions().node_limit else 1


def fastest(runs: Sequence[BlocksRun]) -> BlocksRun:
    """Return the last of some equal runs, with the fewest seconds that any of them explored."""
    return replace(
        runs[-1],
        explore_cpu_s=min(run.explore_cpu_s for run in runs),
        explore_s=min(run.explore_s for run in runs),
    )


def check_repeat(count: int) -> None:
    """Refuse to measure nothing.

    Raises:
        UsageError: the count is below 1.
    """
    if count < 1:
        raise UsageError(f"--repeat {count}, expected at least 1")


def parse_case(text: str) -> Case:
    """Return the case that ``MODEL:K[:NODE_LIMIT]`` names.

    Raises:
        UsageError: it is no such text.
    """
    model, *numbers = text.split(":")
    if len(numbers) not in (1, 2) or not all(number.isdigit() for number in numbers):
        raise UsageError(f"case {text!r}, expected MODEL:K or MODEL:K:NODE_LIMIT")
    return Case(model, *map(int, numbers))


def differences(runs: Sequence[BlocksRun]) -> list[str]:
    """Return a line for every two runs of a case that should have found the same and have not."""
    lines = []
    for plain, block_run in zip(runs[::2], runs[1::2], strict=True):
        saturated = plain.stop_reason == block_run.stop_reason == "saturated"
        sizes = [(run.e_nodes, run.e_classes) for run in (plain, block_run)]
        if saturated and sizes[0] != sizes[1]:
            lines.append(
                f"{plain.model}, k_multi={plain.k_multi}: e-graphs of {sizes[0]} and {sizes[1]}"
            )
    return lines


def save(runs: Sequence[BlocksRun], options: argparse.Namespace, directory: Path) -> Path:
    """Write the runs with their settings, machine, versions and commit; return the file."""
    content = {
        "settings": {
            "cost": options.cost,
            "time_limit_s": options.time_limit,
            "repeat": options.repeat,
            "extract_time_limit_s": options.extract_time_limit,
        },
        "runs": [as_json(run) for run in runs],
    }
    return save_result(directory / f"blocks-{date.today().isoformat()}.json", content)


def _line(run: BlocksRun) -> str:
    cost = "" if run.cost_us is None else f"{run.cost_us:.1f}"
    gap = "" if run.gap is None else f"{run.gap:.2%}"
    values = (
        run.model, run.k_multi, run.blocks, run.e_nodes, run.e_classes, run.stop_reason,
        f"{run.explore_cpu_s:.2f}", f"{run.explore_s:.2f}", f"{run.extract_cpu_s:.2f}", cost, gap,
    )  # fmt: skip
    return "  ".join(f"{value:>15}" for value in values)
