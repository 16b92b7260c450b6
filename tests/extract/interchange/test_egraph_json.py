"""The egraph-serialize format: what is read, what is refused, and the way there and back."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.cli.database import RunDatabase
from relational_tensat.cli.main import main
from relational_tensat.extract import ExtractionProblem, extract
from relational_tensat.extract.interchange import egraph_json, read_egraph_json, save_egraph_json
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize
from tests.extract.instances import brute_force_us, random_problem
from tests.graphs import shared_matmuls


def node(eclass: str, *children: str, cost: Any = 1, **more: Any) -> dict[str, Any]:
    return {"op": "f", "eclass": eclass, "children": list(children), "cost": cost, **more}


def example() -> dict[str, Any]:
    """Two roots that share what is below them; the costly e-node is shared by both."""
    return {
        "nodes": {
            "a1": node("A", "c", cost=3),
            "a2": node("A", "s", cost=0.5),
            "b1": node("B", "c", cost=3),
            "b2": node("B", "s", cost=0.5),
            "s": node("S", "c", cost=4),
            "c": {"op": "leaf", "eclass": "C"},
        },
        "root_eclasses": ["A", "B"],
        "class_data": {"A": {"type": "float32[2]"}},
    }


def written(folder: Path, content: Any) -> Path:
    path = folder / "egraph.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_several_roots_share_what_is_below_them(tmp_path: Path) -> None:
    egraph = read_egraph_json(written(tmp_path, example()))
    extraction = extract(egraph.problem)
    assert extraction.optimal and extraction.cost_us == pytest.approx(6.0)
    assert egraph.named(extraction.choice) == {"A": "a2", "B": "b2", "S": "s", "C": "c"}
    assert egraph.problem.cost_us[egraph.nodes.index("c")] == 1.0  # the format's default


def test_classes_may_be_whole_numbers(tmp_path: Path) -> None:
    numbers = {"A": 0, "B": 1, "S": 2, "C": 31}
    content = example()
    for each in content["nodes"].values():
        each["eclass"] = numbers[each["eclass"]]
    content["root_eclasses"] = [0, 1]
    content["class_data"] = {"0": {}}
    egraph = read_egraph_json(written(tmp_path, content))
    extraction = extract(egraph.problem)
    assert egraph.named(extraction.choice) == {"0": "a2", "1": "b2", "2": "s", "31": "c"}
    content["root_eclasses"] = [True]
    with pytest.raises(InputError, match=r"root_eclasses\[0\]: no e-node is in the e-class True"):
        read_egraph_json(written(tmp_path, content))


def test_subsumed_nodes_are_not_extracted(tmp_path: Path) -> None:
    content = example()
    content["nodes"]["a2"]["subsumed"] = True
    egraph = read_egraph_json(written(tmp_path, content))
    assert "a2" not in egraph.nodes
    assert extract(egraph.problem).cost_us == pytest.approx(7.0)


MALFORMED: list[tuple[Any, str]] = [
    ("{", "not JSON"),
    ([], "expected an object with nodes"),
    ({"nodes": {}, "root_eclasses": ["A"]}, "nodes: expected an object of e-nodes, at least one"),
    ({**example(), "root_eclasses": []}, "root_eclasses: expected a list of e-classes"),
    ({**example(), "root_eclasses": ["Z"]}, r"root_eclasses\[0\]: no e-node is in .* 'Z'"),
    ({**example(), "class_data": []}, "class_data: expected an object by e-class"),
]
BAD_NODES: list[tuple[Any, str]] = [
    (3, r"nodes\['a1'\]: expected an object"),
    ({"eclass": "A"}, r"nodes\['a1'\]: expected a text 'op'"),
    ({"op": "f"}, r"nodes\['a1'\]: expected a text 'eclass'"),
    (node("A", "zz"), r"nodes\['a1'\].children\[0\]: there is no e-node 'zz'"),
    ({**node("A"), "children": [["c"]]}, r"nodes\['a1'\].children\[0\]: there is no e-node"),
    ({**node("A"), "children": "c"}, r"nodes\['a1'\].children: expected a list"),
    (node("A", cost=float("-inf")), r"nodes\['a1'\].cost: -inf, expected a finite number"),
    (node("A", cost=float("nan")), r"nodes\['a1'\].cost: nan, expected a finite number"),
    (node("A", cost=float("inf")), r"nodes\['a1'\].cost: inf"),
    (node("A", cost=True), r"nodes\['a1'\].cost: True"),
    (node("A", cost=None), r"nodes\['a1'\].cost: None"),
    (node("A", subsumed=1), r"nodes\['a1'\].subsumed: 1, expected true or false"),
    (node("D", subsumed=True), "the e-class 'D': all of its e-nodes are subsumed"),
]


@pytest.mark.parametrize(("content", "reason"), MALFORMED)
def test_a_malformed_file_is_refused_with_the_place(
    content: Any, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=f"egraph.json: .*{reason}|egraph.json: {reason}"):
        read_egraph_json(written(tmp_path, content))


@pytest.mark.parametrize(("bad", "reason"), BAD_NODES)
def test_a_malformed_node_is_refused_with_its_name(bad: Any, reason: str, tmp_path: Path) -> None:
    content = example()
    content["nodes"]["a1"] = bad
    with pytest.raises(InputError, match=reason):
        read_egraph_json(written(tmp_path, content))


def test_what_the_format_does_not_have_is_ignored_and_noted(tmp_path: Path) -> None:
    content = {**example(), "comment": "made by a benchmark", "node": {}}
    content["class_data"]["Z"] = {}
    for name in ("a1", "a2"):
        content["nodes"][name]["id"] = name
    egraph = read_egraph_json(written(tmp_path, content))
    assert extract(egraph.problem).cost_us == pytest.approx(6.0)
    assert egraph.note == (
        "ignored: 'comment' of the file, 'node' of the file; did you mean 'nodes'?, "
        "'id' of e-nodes (2 times), 'Z' of class_data"
    )
    assert read_egraph_json(written(tmp_path, example())).note == ""


def test_a_compressed_file_is_read_as_it_is(tmp_path: Path) -> None:
    content = json.dumps(example()).encode()
    compressed = tmp_path / "egraph.json.gz"
    compressed.write_bytes(gzip.compress(content))
    assert extract(read_egraph_json(compressed).problem).cost_us == pytest.approx(6.0)
    for damaged in (gzip.compress(content)[:-20], b"\x1f\x8b" + content):
        compressed.write_bytes(damaged)
        with pytest.raises(
            InputError, match=r"egraph\.json\.gz: not packed by gzip, or truncated: "
        ):
            read_egraph_json(compressed)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.json: No such file"):
        read_egraph_json(tmp_path / "none.json")


def as_file(problem: ExtractionProblem) -> dict[str, Any]:
    """Write a problem whose every class has an e-node in the format."""
    first = {int(c): str(n) for n, c in reversed(list(enumerate(problem.node_class)))}
    return {
        "nodes": {
            str(n): node(
                str(c),
                *(first[int(k)] for k in problem.children(n)),
                cost=float(problem.cost_us[n]),
            )
            for n, c in enumerate(problem.node_class)
        },
        "root_eclasses": [str(problem.root)],
    }


@pytest.mark.parametrize("seed", range(20))
def test_what_is_written_is_read_back(seed: int, tmp_path: Path) -> None:
    problem = random_problem(seed)
    if len(np.unique(problem.node_class)) < problem.n_classes:
        pytest.skip("a class without e-nodes cannot be written")
    egraph = read_egraph_json(written(tmp_path, as_file(problem)))
    assert extract(egraph.problem).cost_us == pytest.approx(brute_force_us(problem))


def test_an_exported_run_has_the_run_s_optimum(tmp_path: Path) -> None:
    database = tmp_path / "run.duckdb"
    result = optimize(shared_matmuls(), Options.of(db=database))
    run = RunDatabase(database)
    save_egraph_json(egraph_json(run), tmp_path / "out.json")
    run.close()
    extraction = extract(read_egraph_json(tmp_path / "out.json").problem)
    assert extraction.optimal and result.optimal
    assert extraction.cost_us == pytest.approx(result.cost_after_us)


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database, out = tmp_path / "run.duckdb", tmp_path / "out.json"
    optimize(shared_matmuls(), Options.of(db=database))
    assert main(["export", str(database), "--egraph-json", str(out)]) == 0
    assert "to extract" in capsys.readouterr().out
    choice = tmp_path / "choice.json"
    argv = ["extract", str(out), "--json", "--json-events", "-o", str(choice)]
    assert main(argv) == 0
    printed = capsys.readouterr()
    report = json.loads(printed.out)
    assert list(report) == [
        "cost", "bound", "gap", "optimal", "seconds", "reductions", "method", "note",
    ]  # fmt: skip
    assert report["optimal"] and report["gap"] == 0.0 and report["bound"] == report["cost"]
    events = [json.loads(line) for line in printed.err.splitlines()]
    assert events and list(events[0]) == ["seconds", "incumbent", "bound"]
    assert events[-1]["incumbent"] == pytest.approx(report["cost"])
    assert json.loads(choice.read_text())["cost"] == report["cost"]
    assert main(["extract", str(out), "--ilp-cycles", "cutts"]) == 2
    assert "did you mean 'cuts'" in capsys.readouterr().err
    assert main(["extract", str(written(tmp_path, "[]"))]) == 3


def test_a_root_that_was_merged_with_another_is_noted(tmp_path: Path) -> None:
    egraph = read_egraph_json(written(tmp_path, {**example(), "root_eclasses": ["A", "Z"]}))
    assert [egraph.classes[root] for root in egraph.roots] == ["A"]
    assert egraph.note == "ignored: roots that no e-node is in ('Z')"


def test_a_root_without_an_acyclic_derivation_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = {"nodes": {"a": node("A", "b"), "b": node("B", "a")}, "root_eclasses": ["B"]}
    assert main(["extract", str(written(tmp_path, content))]) == 5
    assert "e-class 'B' has no acyclic derivation" in capsys.readouterr().err
