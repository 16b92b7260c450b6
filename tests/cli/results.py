"""A made-up result, so that reports are tested without a run."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from relational_tensat.egraph.stopwatch import StatementTime, TimeSpent
from relational_tensat.explore import Exploration, IterationReport, RuleStats
from relational_tensat.run.result import Result
from relational_tensat.run.result_groups import Files, Outcome, Price, Proof, SearchSummary
from relational_tensat.tensor import Node, build_graph
from relational_tensat.verify import OutputCheck, Verification
from relational_tensat.verify.comparison import Compared, Setting
from tests.graphs import f32, shared_matmuls


def example_result() -> Result:
    """Return the result of a run that merged two matmuls."""
    original = shared_matmuls()
    optimized = build_graph(
        original.name,
        original.inputs,
        original.weights,
        [
            Node("concat", ("w1", "w2"), ("w",), {"axis": 1}),
            Node("matmul", ("x", "w"), ("ab",)),
            Node("split", ("ab",), ("a", "b"), {"axis": 1, "sizes": (64, 64)}),
            Node("add", ("a", "b"), ("c",)),
            Node("relu", ("c",), ("y",)),
        ],
        ["y"],
    )
    setting = Setting("float64, random weights")
    check = OutputCheck(setting, "y", f32(64, 64), 1.5e-15, 1e-6)
    exploration = Exploration(
        "saturated",
        8,
        {"merge-matmuls": RuleStats(3, 1, 0.25), "relu-relu": RuleStats(1, 1, 0.125)},
        (IterationReport(1, 20, 15, 4, 2, 0, 30, 0.5),),
        321,
        1.0,
    )
    verification = Verification(
        runs=2,
        outputs=(check,),
        compared=(Compared(setting, 2, "random inputs", "tolerance 1e-06"),),
        warnings=("2 of 2 weights have no data in the model: verified with random ones only",),
    )
    return Result(
        source="models/pair.json",
        graph=optimized,
        original=original,
        price=Price("t4", "t4", 40.0, 30.0),
        search=SearchSummary(exploration, e_nodes=1530, e_classes=586),
        proof=Proof("ilp", 27.0, gap=0.1, optimal=False, rules_used={"merge-matmuls": 4}),
        outcome=Outcome(verification),
        files=Files(output=Path("models/pair.opt.json")),
        seconds={
            "load": 0.5,
            "bodies": 0.0,
            "price": 0.0625,
            "explore": 1.0,
            "fuse": 0.0,
            "extract": 0.25,
            "verify": 0.25,
            "whole": 0.0,
            "write": 0.0,
            "measure": 0.0,
            "total": 2.0,
        },
        notes=("a note",),
        time_spent=TimeSpent(
            {
                ("match", "match"): StatementTime(3, 40, 0.5),
                ("match", "application"): StatementTime(3, 4, 0.125),
                ("match", "quick"): StatementTime(7, 0, 0.001),
                ("apply", "hash_cons"): StatementTime(1, 12, 0.0625),
            },
            {"match": 0.75, "apply": 0.125, "extract": 0.25, "other": 0.1},
        ),
    )


_GROUPS = ("price", "search", "proof", "outcome", "files")


def changed(result: Result, **values: Any) -> Result:
    """Return a result with other values of its fields, or of those of its groups."""
    for name in _GROUPS:
        group = getattr(result, name)
        own = {
            field.name: values.pop(field.name) for field in fields(group) if field.name in values
        }
        result = replace(result, **{name: replace(group, **own)})
    return replace(result, **values)
