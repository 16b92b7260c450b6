"""What ``run --json`` prints, checked by the schema that is published: by nothing more than it names."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema

from relational_tensat.run.result import report_schema

STOP_REASONS = {
    *("saturated", "iterations", "nodes", "time", "memory", "interrupted", "patience"),
    *("focus", "universe", "applications", "threshold"),
}


@cache
def _validator() -> jsonschema.Draft202012Validator:
    schema = report_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(_closed(schema))


def _closed(schema: Any) -> Any:
    """Return the schema with objects that have no other keys: later releases may add some."""
    if isinstance(schema, list):
        return [_closed(element) for element in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        closed["additionalProperties"] = False
    return closed


def check_schema(report: dict[str, Any]) -> None:
    """Fail unless the object has exactly the documented keys, of the documented types."""
    report = json.loads(json.dumps(report, allow_nan=False))
    _validator().validate(report)
    assert report["stop_reason"] in STOP_REASONS
    assert report["saturated"] == (report["stop_reason"] == "saturated")
    assert report["cost_after_us"] <= report["cost_before_us"]
