"""``python -m bench synthesis taso|terms|left-out|planted|worth``: what synthesis finds, and does not."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from bench.synthesis.leave_one_out import left_out
from bench.synthesis.planted import false_laws, without_conditions
from bench.synthesis.taso import many_terms, rediscovered
from bench.synthesis.worth import sought, tried


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser(
        "synthesis", help="rules that are found: TASO's, those left out, planted laws, their worth"
    )
    parser.add_argument("part", choices=("taso", "terms", "left-out", "planted", "worth"))
    parser.add_argument(
        "models", nargs="*", type=Path, metavar="MODEL", help="worth: files that a run has written"
    )
    parser.add_argument("--rules", type=Path, metavar="FILE", help="worth: try these, seek none")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", default=Path("found.rules"))
    parser.add_argument("--db", type=Path, metavar="DB")
    parser.add_argument("--cost", default="cpu-avx2", metavar="PROFILE")
    parser.add_argument("--size", type=int, default=2)
    parser.add_argument("--time-limit", type=float, default=350.0, metavar="S", help="CPU seconds")
    parser.add_argument(
        "--measure", action="store_true", help="worth: time them in onnxruntime, too"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Carry out a part; 1 where it does not show what it must."""
    parts = {"taso": _taso, "terms": _terms, "left-out": _left_out, "planted": _planted}
    return _worth(options) if options.part == "worth" else parts[options.part]()


def _taso() -> int:
    found = terms = 0
    start_s = time.process_time()
    for world in rediscovered():
        found, terms = found + len(world.found), terms + world.terms
        print(
            f"{world.world}: {len(world.found)} rules that no world before has, {world.terms:,} terms,"
            f" {world.enumeration_s:.1f} and {world.look_up_s:.1f} CPU s, {world.peak_mib} MiB",
            flush=True,
        )
    print(f"{found} of 139 rules, {terms:,} terms, {time.process_time() - start_s:.1f} CPU s")
    return 0 if found == 139 else 1


def _terms() -> int:
    """Print how long millions of terms take; 1 where they are too few, too slow, or take too much."""
    found = many_terms()
    print(f"{found.terms:,} terms, {found.enumeration_s:.1f} CPU s, {found.peak_mib} MiB")
    is_quick = found.terms > 500_000 * found.enumeration_s
    return 0 if found.terms >= 5_000_000 and is_quick and found.peak_mib < 1_000 else 1


def _left_out() -> int:
    missing = 0
    for case in left_out():
        missing += not case.is_found
        said = (
            "the others prove it" if case.was_derived else "found" if case.is_found else "missing"
        )
        print(f"{case.rule}: {said}; {case.found} rules, {case.cpu_s:.1f} CPU s", flush=True)
    return 1 if missing else 0


def _planted() -> int:
    wrong = repaired = 0
    for case in false_laws():
        wrong += case.is_refuted or (case.status == "sound" and not case.condition)
        print(f"{case.name}: {case.status} {case.condition}; {case.cpu_s:.1f} CPU s", flush=True)
    for case in without_conditions():
        wrong += case.is_refuted
        repaired += case.status == "sound"
        print(f"{case.name}: {case.status} {case.condition}; {case.cpu_s:.1f} CPU s", flush=True)
    print(f"{wrong} false laws pass; {repaired} conditions repaired")
    return 1 if wrong else 0


def _worth(options: argparse.Namespace) -> int:
    if options.rules is None:
        limits = options.size, options.time_limit, options.db, options.output
        for name, count in sought(options.models, options.cost, *limits):
            print(f"{name}: {count:,}")
        return 0
    for model in tried(options.models, options.rules, options.measure):
        share = 1 - model.found_us / model.shipped_us
        timed = (
            f"; onnxruntime {model.shipped_ms:.3f} → {model.found_ms:.3f} ms"
            if model.found_ms
            else ""
        )
        print(
            f"{model.model}: {model.shipped_us:.1f} → {model.found_us:.1f} µs, {share:.2%} less{timed}:"
            f" {', '.join(model.used)}",
            flush=True,
        )
    return 0
