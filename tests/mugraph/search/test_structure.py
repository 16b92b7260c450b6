"""From a kernel to the rows that it came from: in the μGraph, in a database, as printed SQL."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from relational_tensat.cli.main import main
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.mugraph.graph.mugraph_json import (
    content_hash,
    decoded,
    encoded,
    load_mugraph,
    save_mugraph,
)
from relational_tensat.mugraph.search.routes import FoundGraph, build
from tests.mugraph.kernels.mugraphs import attention
from tests.mugraph.searches import searched

MLP = ["mlp", "--size", "m=16,k=64,r=16,n=64"]


def built(found: FoundGraph) -> MuGraph:
    """Return it at sizes that need no choice."""
    return build(found, [((1,) * len(kernel.grid), 1) for kernel in found.kernels])


def test_every_step_of_a_block_is_a_row_and_its_operands_are() -> None:
    levels: Counter[int] = Counter()
    for route in searched("attention", 2).routes:
        graph = built(next(route.graphs()))
        for kernel in graph.kernels:
            rows = {row.tensor: row for row in graph.rows if row.kernel == kernel.name}
            terms = {row.term: row.tensor for row in rows.values()}
            loads = {iterator.output for iterator in kernel.block.iterators}
            assert {row.tensor for row in rows.values() if row.op == "load"} == loads
            for step in kernel.block.steps:
                row = rows.pop(step.outputs[0])
                operands = [terms[term] for term in (row.a, row.b) if term]
                assert sorted(operands) == sorted(step.operands)
                assert row.op != "div" or operands == list(step.operands)
                kind = step.op if isinstance(step, Operation) else f"accumulate {step.kind}"  # type: ignore[union-attr]
                assert row.op == kind and row.derivations > 0
                levels[row.level] += 1
            assert rows.keys() == loads
    assert set(levels) == {1, 2}


def test_rows_stay_in_files_and_are_no_part_of_what_a_graph_is() -> None:
    graph = built(next(searched("attention", 2).routes[-1].graphs()))
    read = decoded(encoded(graph), "file")
    assert read.rows == graph.rows != ()
    bare = MuGraph(graph.name, graph.inputs, graph.steps, graph.outputs)
    assert bare == graph and content_hash(bare) == content_hash(graph)


def test_a_kept_search_answers_from_a_kernel_to_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RELATIONAL_TENSAT_CACHE", str(tmp_path / "cache"))
    path, file = str(tmp_path / "search.duckdb"), str(tmp_path / "best.json")
    everything = ["--disable", "bounds", "--db", path, "-o", file]
    assert main(["kernels", "search", *MLP, *everything]) == 0
    graph = load_mugraph(Path(file))
    key = f"k{content_hash(graph)}"
    assert capsys.readouterr().out.endswith(f"kept as {key} in {path}\n")
    with duckdb.connect(path, read_only=True) as connection:
        levels = connection.execute("SELECT DISTINCT level FROM term ORDER BY 1").fetchall()
        stored = connection.execute("SELECT * EXCLUDE mugraph FROM kernel_term").fetchall()
    assert levels == [(1,), (2,), (3,)]
    assert sorted(stored) == sorted(tuple(row.content().values()) for row in graph.rows)
    assert main(["kernels", "show", key, "--db", path, "--sql"]) == 0
    printed = capsys.readouterr().out
    asked = re.split(r"\n(?=-- (?:The|Its) )", printed)[1:]
    assert len(asked) == 3
    for text in asked:
        query = text[: text.index("\nkernel ")]
        assert main(["sql", path, query, "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        assert rows
    passed = {row["term"] for row in rows}  # the last of them: what let the terms pass
    assert passed == {row.term for row in graph.rows if row.op != "load"}


def test_what_has_no_rows_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, other = tmp_path / "attention.json", tmp_path / "found.json"
    save_mugraph(attention(), file)
    save_mugraph(built(next(searched("attention", 2).routes[0].graphs())), other)
    assert main(["kernels", "show", str(other), "--sql"]) == 0
    assert "fingerprint" in capsys.readouterr().out
    for arguments, message in (
        (["show", str(file), "--sql"], "attention: no rows of a search"),
        (["show", "k0", "--db", str(tmp_path / "none.duckdb")], "no such database file"),
        (["search", *MLP, "--db", str(file)], "is there already; name another database"),
    ):
        assert main(["kernels", *arguments]) == 3
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1
