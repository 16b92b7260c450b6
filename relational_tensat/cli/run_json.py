"""The report of a run, for programs."""

from __future__ import annotations

import json

from relational_tensat.run.result import Result


def json_report(result: Result) -> str:
    """Return the one JSON object of a run; never NaN or infinity, which JSON does not have."""
    return json.dumps(result.to_json(), allow_nan=False)
