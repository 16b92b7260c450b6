"""The report of a run for programs, and with all details for people; by default, people get a short one.

Each way to compute has one line for all comparisons, sizes and masks. Time is by phase and statement, with
how much of it was Python's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from relational_tensat.base.shown_text import escaped
from relational_tensat.cli.console import table
from relational_tensat.cli.run_course_text import (
    print_decisions,
    print_extractions,
    print_kernels,
    print_race,
    print_subgraphs,
    reduced_line,
)
from relational_tensat.cli.short_report import (
    kernels_line,
    short_report,
    title_line,
    unproven_line,
    untrusted_line,
)
from relational_tensat.egraph.stopwatch import OTHER
from relational_tensat.explore.outcome import stop_text
from relational_tensat.run.account import proof_text, size_text
from relational_tensat.run.progress import PHASES
from relational_tensat.run.reports import FusionReport
from relational_tensat.run.result import Result
from relational_tensat.run.result_groups import ONNX, WholeRun
from relational_tensat.verify.comparison import Compared
from relational_tensat.verify.verification import Verification


def json_report(result: Result) -> str:
    """Return the one JSON object of a run; never NaN or infinity, which JSON does not have."""
    return json.dumps(result.to_json(), allow_nan=False)


#: Statements of a phase that take less than this share of the run are summed up.
_LEAST_SHARE = 0.002
#: The phases of a run in which no statements run.
_PYTHON_ONLY = ("load", "verify", "write")
#: Those that not all runs have.
SOMETIMES = ("bodies", "price", "fuse", "whole")


def _print_time_spent(result: Result, console: Console) -> None:
    """Print the phases by their seconds, in each its statements by theirs, then what they sum up to."""
    spent, total = result.time_spent, result.seconds["total"]
    phases = {name: seconds for name, seconds in spent.phases.items() if name != OTHER}
    phases |= {name: result.seconds[name] for name in _PYTHON_ONLY}
    phases |= {name: result.seconds[name] for name in SOMETIMES if result.seconds[name]}
    phases[OTHER] = max(total - sum(phases.values()), 0.0)
    numbers = ("times", "rows", "s", "share")
    shape = table("phase", "statement", *numbers, numbers=numbers)
    for phase in sorted(phases, key=lambda name: -phases[name]):
        shape.add_row(phase, "", "", "", *_time(phases[phase], total), style="bold")
        for row in _statements(result, phase, phases[phase]):
            shape.add_row("", *row)
    console.print(shape)
    in_database = sum(statement.seconds for statement in spent.statements.values())
    count = sum(statement.count for statement in spent.statements.values())
    share = in_database / total if total else 0.0
    console.print(
        f"of {total:.2f} s, {in_database:.2f} s ({share:.0%}) in {count:,} statements of DuckDB, "
        f"{total - in_database:.2f} s in Python and what else it calls"
    )
    console.print()


def _statements(result: Result, phase: str, seconds: float) -> list[tuple[str, ...]]:
    """Return the rows below a phase: the slowest first, then the sum of the rest."""
    total = result.seconds["total"]
    rows: list[tuple[float, tuple[str, ...]]] = []
    count, rest_s = 0, 0.0
    for (where, name), statement in result.time_spent.statements.items():
        if where != phase:
            continue
        if statement.seconds < _LEAST_SHARE * total:
            count, rest_s = count + statement.count, rest_s + statement.seconds
        else:
            shown = (
                name,
                f"{statement.count:,}",
                f"{statement.rows:,}",
                *_time(statement.seconds, total),
            )
            rows.append((statement.seconds, shown))
    in_database = result.time_spent.database_seconds(phase)
    if in_database:
        python = max(seconds - in_database, 0.0)
        rows.append((python, ("(Python)", "", "", *_time(python, total))))
    ordered = [row for _, row in sorted(rows, key=lambda item: -item[0])]
    return [
        *ordered,
        *([("(all others)", f"{count:,}", "", *_time(rest_s, total))] if count else []),
    ]


def _time(seconds: float, total: float) -> tuple[str, str]:
    return f"{seconds:.3f}", f"{seconds / total:.1%}" if total else ""


def _print_verification(verification: Verification, verdict: str, console: Console) -> None:
    """Print what was compared, how much it differed, and what that does not prove.

    Args:
        verdict: the line if nothing was compared.
    """
    if verification.ok:
        console.print(
            f"{'not proven' if verification.unproven else 'verified'}: {verification.runs} comparisons, "
            f"worst relative error {verification.max_relative_error:.2e}"
        )
    else:
        console.print(f"nothing compared: {verdict}")
    alike: dict[tuple[str, ...], list[Compared]] = {}
    for one in verification.compared:
        key = (one.setting.what, one.inputs, one.demand, one.remark)
        alike.setdefault(key, []).append(one)
    for comparisons in alike.values():
        console.print(f"  {_line(comparisons, verification)}")
    settings = [one.setting for one in verification.compared]
    for title, texts in (
        ("masked", [setting.rows for setting in settings]),
        ("sizes", [setting.sizes for setting in settings]),
    ):
        if different := list(filter(None, dict.fromkeys(texts))):
            console.print(f"  {title}: {'; '.join(different)}")
    if len({check.output for check in verification.outputs}) > 1:
        console.print(_outputs(verification))
    for warning in verification.warnings:
        console.print(f"  caution: {warning}", style="yellow")


def _line(comparisons: list[Compared], verification: Verification) -> str:
    """Return in one line what was compared in several settings of one kind."""
    first, runs = comparisons[0], sum(one.runs for one in comparisons)
    masked = sum(one.runs for one in comparisons if one.setting.rows)
    n_sizes = len({one.setting.sizes for one in comparisons})
    parts = [f"{masked} of them masked"] if 0 < masked < runs else []
    parts += [f"at {n_sizes} sizes"] if n_sizes > 1 else []
    parts += [first.demand, *filter(None, [first.remark])]
    checks = [c for one in comparisons for c in verification.checks(one.setting)]
    worst = max(checks, key=lambda check: check.max_relative_error)
    suffix = "" if any(check.proves_something for check in checks) else f" ({worst.note})"
    times = f"{runs} {'run' if runs == 1 else 'runs'} on {first.inputs}"
    return (
        f"{first.setting.what}: {', '.join([times, *parts])}; "
        f"worst {worst.max_relative_error:.2e}{suffix}"
    )


def _outputs(verification: Verification) -> Table:
    rows = table("output", "worst relative error", numbers=("worst relative error",))
    worst: dict[str, float] = {}
    for check in verification.outputs:
        if check.proves_something:
            worst[check.output] = max(worst.get(check.output, 0.0), check.max_relative_error)
    for name, error in worst.items():
        rows.add_row(name, f"{error:.2e}")
    return rows


_RULES_SHOWN = 20


def print_report(
    result: Result, console: Console, *, details: bool = False, next_step: str = ""
) -> None:
    """Print what a run found, and how sure it is.

    Args:
        details: print all that is known, and where the time went, instead of at most twelve lines.
        next_step: advice to the reader; the short report ends with it.
    """
    if details:
        _print_details(result, console)
        return
    for line in short_report(result, next_step=next_step):
        console.print(line)


def _print_details(result: Result, console: Console) -> None:
    if result.untrusted_rules:
        console.print(Text(untrusted_line(result), style="bold red"))
    if result.verification.unproven:
        console.print(Text(unproven_line(result), style="bold red"))
    for rejection in result.rejections:
        console.print(Text(escaped(rejection.why), style="bold red"))
        for line in rejection.reproduction:
            console.print(f"  {line}")
    console.print(Text(escaped(title_line(result)), style="bold"))
    console.print(result.gain.text)
    if result.gain.with_run:
        console.print(result.gain.with_run)
    console.print(size_text(result))
    if result.costs.any_measured:
        counts = ", ".join(f"{count:,} {origin}" for origin, count in asdict(result.costs).items())
        console.print(f"costs of operator configurations: {counts}")
    if result.lists_kernels:
        print_kernels(result.kernels_us, console)
    if result.race is not None:
        print_race(result.race, result.bound_us, console)
    if result.whole is not None:
        console.print(_whole_line(result.whole, result.cost_profile))
    if result.machine is not None:
        console.print(result.machine.outcome)
    if result.library is not None:
        console.print(escaped(result.library.outcome))
    if result.runtimes is not None:
        console.print(result.runtimes.outcome)
        console.print(f"run it by {result.runtimes.usage}")
    _print_operators(result, console)
    _print_rules(result, console)
    if result.fusion is not None:
        _print_kernels(result.fusion, console)
    _print_search(result, console)
    _print_time_spent(result, console)
    _print_verification(result.verification, _verdict(result), console)
    headlines = [rejection.why for rejection in result.rejections]
    for note in (note for note in result.notes if note not in headlines):
        console.print(f"note: {escaped(note)}")
    if result.output is not None:
        console.print(f"written to {result.output}")


def _whole_line(whole: WholeRun, source: str) -> str:
    """Return the line that holds the measured speed-up of the extracted graph against the modelled one."""
    timing = whole.timing
    after = whole.modelled_after_us
    modelled = f"; {whole.modelled_before_us / after:.2f}x modelled" if after else ""
    suffix = ": the original is kept" if whole.keeps_original else ""
    return (
        f"run whole on {source}: {_us(timing.before_us)} → {_us(timing.after_us)} µs "
        f"({timing.speedup:.2f}x measured, {timing.speedup_p10:.2f}-{timing.speedup_p90:.2f} in "
        f"{timing.rounds} rounds{modelled}){suffix}"
    )


def _us(time_us: float) -> str:
    """Return microseconds with as many digits as may mean something."""
    return f"{time_us:,.0f}" if time_us >= 1000 else f"{time_us:,.1f}"


def summary_line(result: Result) -> str:
    """Return the whole result in one line."""
    where = f" → {result.output}" if result.output else ""
    warning = f"{untrusted_line(result)}; " if result.untrusted_rules else ""
    whole = f"{_whole_line(result.whole, result.cost_profile)}; " if result.whole else ""
    machine = f"{result.machine.outcome}; " if result.machine and result.machine.taken else ""
    return (
        f"{warning}{result.source}{where}: {result.gain.text}; {whole}{machine}{_confidence(result)}; "
        f"{_stop_text(result)}; {_verdict(result)}{_rejected(result)}"
    )


def _stop_text(result: Result) -> str:
    is_exhaustive = result.search.exploration.is_exhaustive
    return stop_text(result.stop_reason, is_exhaustive=is_exhaustive)


def _verdict(result: Result) -> str:
    """Return in a few words what was compared; "verified" only where something was."""
    verification = result.verification
    if verification.ok and verification.unproven:
        return f"not proven: {verification.unproven}"
    if verification.ok:
        return f"verified, worst relative error {verification.max_relative_error:.1e}"
    return "the original, unchanged" if result.unchanged else "not compared"


def _rejected(result: Result) -> str:
    return "".join(f"; {rejection.why}" for rejection in result.rejections)


def _operator(op: str, result: Result) -> str:
    """Return what a row is called: operators that no rule looks into by the names that the file has."""
    if op != "opaque":
        return op
    nodes = [node for graph in (result.original, result.graph) for node in graph.nodes]
    names = {str(node.attrs["op_type"]) for node in nodes if node.op == op}
    return f"{op}: {', '.join(sorted(names))}"


def _print_operators(result: Result, console: Console) -> None:
    counts = result.operators
    if counts.terms == ONNX:
        console.print()
        console.print(_counted("operator in the files", counts.before, counts.after, "all nodes"))
    before, after = (
        {_operator(op, result): count for op, count in ops.items()}
        for ops in (result.ops_before, result.ops_after)
    )
    console.print()
    console.print(_counted("operator at inference", before, after, "all at inference"))
    console.print()


def _counted(title: str, before: Mapping[str, int], after: Mapping[str, int], total: str) -> Table:
    rows = table(title, "before", "after", "change", numbers=("before", "after", "change"))
    for op in sorted({*before, *after}, key=lambda op: (-before.get(op, 0), op)):
        old, new = before.get(op, 0), after.get(op, 0)
        style = None if old == new else ("green" if new < old else "yellow")
        change = "" if old == new else f"{new - old:+d}"
        rows.add_row(op, f"{old:,}", f"{new:,}", change, style=style)
    old, new = sum(before.values()), sum(after.values())
    rows.add_section()
    rows.add_row(total, f"{old:,}", f"{new:,}", f"{new - old:+d}" if new != old else "")
    return rows


def _print_rules(result: Result, console: Console) -> None:
    rules_used = sorted(result.rules_used.items(), key=lambda item: (-item[1], item[0]))
    if not rules_used:
        return
    rows = table("rules that made the result", "e-nodes", numbers=("e-nodes",))
    for name, count in rules_used[:_RULES_SHOWN]:
        rows.add_row(name, f"{count:,}")
    console.print(rows)
    if len(rules_used) > _RULES_SHOWN:
        console.print(f"(showing {_RULES_SHOWN} of {len(rules_used)})")
    console.print()


def _print_kernels(fusion: FusionReport, console: Console) -> None:
    if fusion.used:
        rows = table("kernel", "µs", "operators", numbers=("µs",))
        for kernel in fusion.used:
            several = f" (as {kernel.launches} kernels)" if kernel.launches > 1 else ""
            several += f" ({kernel.results} results)" if kernel.results > 1 else ""
            operators = ", ".join(kernel.operators) + several
            rows.add_row(kernel.mugraph, f"{kernel.cost_us:,.2f}", operators)
        console.print(rows)
        console.print()
    console.print(kernels_line(fusion))


def _print_search(result: Result, console: Console) -> None:
    console.print(
        f"explored: {result.e_nodes:,} e-nodes in {result.e_classes:,} e-classes, "
        f"{result.iterations} iterations; {_stop_text(result)}"
    )
    early = "; interrupted: this is the best so far" if result.extraction.interrupted else ""
    console.print(f"extracted: {result.extractor}, {_confidence(result)}{early}")
    if result.extraction.reduced_e_nodes is not None:
        console.print(reduced_line(result.extraction))
    if result.decisions:
        print_decisions(result, console)
    if result.subgraphs:
        print_subgraphs(result, console)
    elif len(result.extractions) > 1:
        print_extractions(result, console)
    total = result.seconds["total"]
    shares = [
        f"{phase} {result.seconds[phase]:.2f} s ({result.seconds[phase] / total:.0%})"
        for phase in PHASES
        if result.seconds[phase] or phase not in SOMETIMES
    ]
    measuring = result.seconds["measure"]
    suffix = f"; measuring was {measuring:.2f} s of it" if measuring else ""
    console.print(f"took {total:.2f} s: {', '.join(shares)}{suffix}")


def _confidence(result: Result) -> str:
    """Return how good the extracted graph is known to be; "optimal" only where it was proven."""
    if result.keeps_original:
        slower = any(run is not None and run.keeps_original for run in (result.whole, result.race))
        reason = "not faster, measured whole" if slower else "not known to be right"
        return f"the original, as the graph that is cheaper by the sums is {reason}; {proof_text(result)}"
    return proof_text(result)
