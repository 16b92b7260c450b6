"""``explain`` as a user runs it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import duckdb
import pytest

from relational_tensat.cli.main import main
from relational_tensat.egraph import EGraph
from relational_tensat.explore import explore
from relational_tensat.formats import save_model
from relational_tensat.rules.language import parse_rules
from tests.egraph.extraction import cheapest_graph
from tests.graphs import shared_matmuls

NUMBER = (int, float)
SCHEMA: dict[str, Any] = {
    "model": str,
    "cost_original_us": NUMBER,
    "cost_before_us": NUMBER,
    "cost_after_us": NUMBER,
    "cheaper": bool,
    "kept_original": (str, type(None)),
    "operators_before": int,
    "shared": list,
    "steps": list,
    "checked": (dict, type(None)),
}
STEP: dict[str, Any] = {
    "step": int,
    "rule": str,
    "law": str,
    "backward": bool,
    "at": list,
    "before": list,
    "after": list,
    "cost_us": NUMBER,
    "operators": int,
}
CHECKED: dict[str, Any] = {
    "ok": bool,
    "tensors": int,
    "max_relative_error": NUMBER,
    "tolerance": NUMBER,
    "failures": list,
}
RULES = """
(rule twice (law "relu is idempotent") (from (relu (relu ?x))) (to (relu ?x)))
(rule wrong (law "tanh is relu, which is not so") (unsound) (from (relu ?x)) (to (tanh ?x)))
"""


def fits(report: dict[str, Any], schema: dict[str, Any]) -> bool:
    """Whether an object has exactly the documented keys, of the documented types."""
    return list(report) == list(schema) and all(
        isinstance(report[key], kind) for key, kind in schema.items()
    )


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "pair.json"
    save_model(shared_matmuls(with_data=True), path)
    return path


@pytest.fixture
def database(model: Path) -> Path:
    rules, db = model.with_name("mine.rules"), model.with_name("run.duckdb")
    rules.write_text(RULES)
    flags = [
        "--rules",
        str(rules),
        "--only",
        "twice",
        "--quiet",
        "-o",
        str(model.with_name("o.json")),
    ]
    assert main(["run", str(model), "--db", str(db), *flags]) == 0
    return db


def test_the_chain_of_steps(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["explain", str(database)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    first, step, checked = out.splitlines()
    assert first.startswith("shared_matmuls: ")
    assert first.endswith(" µs in 1 step, each one application of one rule")
    assert step.startswith("step 1/1  twice  (relu is idempotent)  at y: relu, relu → relu  cost ")
    assert step.endswith(" µs")
    assert checked.startswith("checked: every step is what its rule says")
    assert main(["explain", str(database), "--check"]) == 0
    out, _ = capsys.readouterr()
    assert "checked: 1 replaced tensor computed both ways" in out.splitlines()[-1]


def test_json(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["explain", str(database), "--json", "--check"]) == 0
    out, _ = capsys.readouterr()
    report = json.loads(out)
    assert fits(report, SCHEMA)
    (step,) = report["steps"]
    assert fits(step, STEP)
    assert (step["rule"], step["at"]) == ("twice", [{"tensor": "y", "near": ""}])
    assert report["cost_after_us"] == step["cost_us"] < report["cost_original_us"]
    assert fits(report["checked"], CHECKED)
    assert report["checked"]["ok"] is True
    assert math.isfinite(report["checked"]["max_relative_error"])
    assert main(["explain", str(database), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checked"] is None


def test_a_difference_is_exit_code_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db = tmp_path / "run.duckdb"
    egraph = EGraph.create(shared_matmuls(), db)
    explore(egraph, parse_rules(RULES, "mine.rules"))
    cheapest_graph(egraph)
    egraph.close()
    with duckdb.connect(str(db)) as connection:  # put the wrong e-node into the result
        connection.execute("""
            UPDATE chosen SET enode = wrong.id
            FROM enode_text AS wrong
            WHERE wrong.op = 'tanh' AND wrong.class = chosen.class
                AND NOT list_contains(wrong.children, wrong.class)
        """)
    capsys.readouterr()
    assert main(["explain", str(db), "--check"]) == 4
    out, err = capsys.readouterr()
    assert "wrong" in out
    assert err.count("\n") == 1
    assert err.startswith(f"relational-tensat: {db}: ")


def test_what_cannot_be_explained(
    model: Path, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def line_of(*argv: object) -> str:
        capsys.readouterr()
        assert main(["explain", *map(str, argv)]) == 3
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        return err

    assert "no such database file" in line_of(model.with_name("none.duckdb"))
    assert "cannot be opened" in line_of(model)
    other = model.with_name("other.duckdb")
    duckdb.connect(str(other)).close()
    assert f"{other}: not a database of a run" in line_of(other)
    with duckdb.connect(str(database)) as connection:
        connection.execute("DELETE FROM chosen")
    assert f"{database}: no graph has been extracted" in line_of(database)
    with duckdb.connect(str(database)) as connection:
        connection.execute("UPDATE meta SET value = '1' WHERE key = 'format_version'")
    assert "format 1, expected" in line_of(database)
