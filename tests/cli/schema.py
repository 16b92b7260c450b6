"""The schema of the object that ``run --json`` prints."""

from __future__ import annotations

import math
from typing import Any

NUMBER = (int, float)
SCHEMA: dict[str, Any] = {
    "model": str,
    "runs_on": str,
    "gain": {
        "basis": str,
        "on": str,
        "speedup": NUMBER,
        "timed": (dict, type(None)),
        "original_kept": bool,
        "text": str,
    },
    "cost_profile": str,
    "cost_before_us": NUMBER,
    "cost_after_us": NUMBER,
    "run_us": NUMBER,
    "run_after_us": NUMBER,
    "costs": dict.fromkeys(("measured", "cached", "recorded", "estimated", "spared"), int),
    "cost_basis": str,
    "kernels_us": dict,  # by operator: before, after
    "race": (dict, type(None)),
    "whole": (dict, type(None)),  # WHOLE
    "machine": (dict, type(None)),
    "e_nodes": int,
    "e_classes": int,
    "iterations": int,
    "stop_reason": str,
    "saturated": bool,
    "gap": NUMBER,
    "optimal": bool,
    "exhaustive": bool,
    "fusion": (dict, type(None)),  # kernels of the model's own: parts, kernels, used
    "extraction": {
        "e_nodes": int,
        "e_classes": int,
        "reduced_e_nodes": (int, type(None)),
        "reduced_e_classes": (int, type(None)),
        "components": (int, type(None)),
        "distinct_components": (int, type(None)),
        "reductions": None,  # e-nodes dropped, per reduction
        "interrupted": bool,
    },
    "extractions": list,
    "worlds": list,  # of a search
    "decisions": list,  # of a tree search
    "seconds": dict.fromkeys(
        (
            "load",
            "price",
            "explore",
            "fuse",
            "extract",
            "verify",
            "whole",
            "write",
            "measure",
            "total",
        ),
        NUMBER,
    ),
    "time_spent": {"phases": None, "statements": list},  # seconds per phase; STATEMENT
    "verified": {
        "ok": bool,
        "unproven": str,
        "max_relative_error": NUMBER,
        "runs": int,
        "stand_ins": list,
        "comparisons": list,  # COMPARISON
    },
    "rules": None,  # one RULE per name
    "unchanged": bool,
    "file": (dict, type(None)),  # figures of the ONNX file before and after
    "operators": {"terms": str, "before": dict, "after": dict},  # of the files, or of the graphs
    "rejections": list,  # why, rule, reproduction
    "notes": list,
    "cautions": list,
    "output": (str, type(None)),
    "resumed_after": (int, type(None)),  # the last complete iteration before a run was resumed
    "untrusted_rules": None,  # why, per name
}
COMPARISON: dict[str, Any] = {
    "what": str,
    "rows": str,
    "sizes": str,
    "runs": int,
    "demand": str,
    "max_relative_error": NUMBER,
}
EXTRACTION: dict[str, Any] = {
    "iteration": int,
    "cost_us": NUMBER,
    "best_us": NUMBER,
    "bound_us": NUMBER,
    "optimal": bool,
    "seconds": NUMBER,
    "final": bool,
}
WORLD: dict[str, Any] = {
    "world": int,
    "kind": str,
    "node_limit": int,
    "seed_us": NUMBER,
    "best_us": NUMBER,
    "e_nodes": int,
    "universe": int,
    "iteration": int,
    "stop_reason": str,
    "seconds": NUMBER,
}
DECISION: dict[str, Any] = {
    "decision": int,
    "rule_id": int,
    "rule": str,
    "rollouts": int,
    "mean_ms": NUMBER,
    "cost_us": NUMBER,
    "best_us": NUMBER,
    "e_nodes": int,
    "universe": int,
    "seconds": NUMBER,
}
STATEMENT: dict[str, Any] = {
    "phase": str,
    "statement": str,
    "count": int,
    "rows": int,
    "seconds": NUMBER,
}
WHOLE: dict[str, Any] = {
    "before_us": NUMBER,
    "after_us": NUMBER,
    "speedup": NUMBER,
    "speedup_p10": NUMBER,
    "speedup_p90": NUMBER,
    "rounds": int,
    "modelled_before_us": NUMBER,
    "modelled_after_us": NUMBER,
    "kept": str,
}
RULE: dict[str, Any] = {"matches": int, "applied": int, "seconds": NUMBER}
STOP_REASONS = {
    *("saturated", "iterations", "nodes", "time", "memory", "interrupted", "patience"),
    *("focus", "universe", "applications", "threshold"),
}


def check_schema(report: dict[str, Any]) -> None:
    """Fail unless the object has exactly the documented keys, of the documented types."""
    _check(report, SCHEMA, "")
    assert isinstance(report["rules"], dict)
    for name, stats in report["rules"].items():
        _check(stats, RULE, f"rules.{name}")
    for comparison in report["verified"]["comparisons"]:
        _check(comparison, COMPARISON, "verified.comparisons")
    for statement in report["extractions"]:
        _check(statement, EXTRACTION, "extractions")
    for world in report["worlds"]:
        _check(world, WORLD, "worlds")
    for decision in report["decisions"]:
        _check(decision, DECISION, "decisions")
    for statement in report["time_spent"]["statements"]:
        _check(statement, STATEMENT, "time_spent")
    if report["whole"] is not None:
        _check(report["whole"], WHOLE, "whole")
    assert report["stop_reason"] in STOP_REASONS
    assert report["saturated"] == (report["stop_reason"] == "saturated")
    assert 0.0 <= report["gap"] <= 1.0
    assert report["cost_after_us"] <= report["cost_before_us"]


def _check(item: Any, schema: dict[str, Any], where: str) -> None:
    assert isinstance(item, dict), where
    assert list(item) == list(schema), where
    for key, kind in schema.items():
        value, place = item[key], f"{where}.{key}"
        if isinstance(kind, dict):
            _check(value, kind, place)
        elif kind is not None:
            assert isinstance(value, kind), f"{place} = {value!r}"
            assert kind is bool or not isinstance(value, bool), place
            if isinstance(value, float):
                assert math.isfinite(value), place
                assert value >= 0, place
