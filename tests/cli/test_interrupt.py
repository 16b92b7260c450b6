"""Ctrl-C at each stage of ``run``, sent to a real process when its events say where it is."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from relational_tensat.extract import ExtractionProblem
from tests.cli.schema import check_schema
from tests.extract.instances import layered_problem

MODEL = Path(__file__).parents[2] / "bench" / "inputs" / "nasrnn.json"

#: An integer program of which HiGHS does not prove the optimum in minutes.
HARD = [
    "--iterations",
    1,
    "--set",
    "ilp-cycles=real",
    "--set",
    "extract-time-limit=600",
    "--set",
    "verify-runs=1",
]


class Process:
    """A run whose events are read as they come."""

    def __init__(self, process: subprocess.Popen[str], output: Path) -> None:
        self.process = process
        self.output = output

    def wait_for(self, event: str, **values: Any) -> dict[str, Any]:
        """Read events until there is one with these values; return it."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            report: dict[str, Any] = json.loads(line)
            if report["event"] == event and values.items() <= report.items():
                return report
        pytest.fail(f"no event {event} {values}")

    def press(self) -> None:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def result(self) -> dict[str, Any]:
        """Return what ``--json`` prints in the end."""
        assert self.process.stdout is not None
        report: dict[str, Any] = json.loads(self.process.stdout.read())
        assert self.process.wait() == 0
        check_schema(report)
        assert report["verified"]["ok"] or report["unchanged"]
        assert self.output.is_file()
        return report


@contextmanager
def running(folder: Path, *flags: object) -> Iterator[Process]:
    output = folder / "out.json"
    argv = ["run", MODEL, "-o", output, "--json", "--json-events", *HARD, *flags]
    command = [sys.executable, "-m", "relational_tensat", *map(str, argv)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Process(process, output)
        finally:
            process.kill()


def test_during_extraction_the_best_so_far_is_verified_and_written(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        best = run.wait_for("bound", phase="extract")
        run.press()
        report = run.result()
    assert report["extraction"]["interrupted"]
    assert report["stop_reason"] == "iterations"
    assert report["cost_after_us"] <= best["incumbent"] * (1 + 1e-9)
    assert not report["optimal"]
    assert 0 < report["gap"] <= 1 - best["bound"] / best["incumbent"] + 1e-9


def test_before_the_first_graph_is_found_the_original_is_there(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        run.wait_for("phase", phase="extract")
        run.press()
        report = run.result()
    assert report["extraction"]["interrupted"]
    assert report["cost_after_us"] <= report["cost_before_us"]


def test_between_iterations_it_ends_exploration_too(tmp_path: Path) -> None:
    with running(
        tmp_path, "--set", "extract-every=1", "--iterations", 2, "--time-limit", 600
    ) as run:
        run.wait_for("incumbent", phase="explore", iteration=1)
        run.press()
        report = run.result()
    assert report["stop_reason"] == "interrupted"
    assert report["extraction"]["interrupted"]
    assert [extraction["final"] for extraction in report["extractions"]] == [False, True]
    assert report["extractions"][-1]["best_us"] < report["cost_before_us"]


def test_while_a_subgraph_is_extracted_from_it_ends_the_search(tmp_path: Path) -> None:
    with running(tmp_path, "--search", "focus", "--time-limit", 600) as run:
        best = run.wait_for("bound", phase="explore")
        run.press()
        report = run.result()
    assert report["stop_reason"] == "interrupted"
    assert [subgraph["kind"] for subgraph in report["subgraphs"]] == ["original"]
    assert report["cost_after_us"] <= best["incumbent"] * (1 + 1e-9)


def test_the_second_one_ends_the_run_without_output(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        run.wait_for("bound", phase="extract")
        run.press()
        run.wait_for("phase", phase="verify")
        run.press()
        assert run.process.stdout is not None
        assert run.process.stderr is not None
        assert run.process.stdout.read() == ""
        assert run.process.stderr.read() == "relational-tensat: interrupted\n"
        assert run.process.wait() == 130
    assert list(tmp_path.iterdir()) == []


def test_extract_answers_it_too(tmp_path: Path) -> None:
    file = tmp_path / "egraph.json"
    file.write_text(json.dumps(serialized(layered_problem(layers=6, width=8, seed=2))))
    command = [sys.executable, "-m", "relational_tensat", "extract", str(file), "--json"]
    command += ["--json-events", "--ilp-cycles", "real", "--extract-time-limit", "600"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        bound = 0.0
        while not bound:
            bound = json.loads(process.stderr.readline())["bound"]
        process.send_signal(signal.SIGINT)
        report = json.loads(process.stdout.read())
        assert process.wait() == 0
    assert "interrupted" in report["note"]
    assert 0 < report["gap"] < 1


def serialized(problem: ExtractionProblem) -> dict[str, Any]:
    """Return an e-graph as egraph-serialize writes it."""
    first = {int(klass): node for node, klass in reversed([*enumerate(problem.node_class)])}
    nodes = {
        str(node): {
            "op": "op",
            "children": [str(first[int(child)]) for child in problem.children(node)],
            "eclass": str(int(problem.node_class[node])),
            "cost": float(problem.cost_us[node]),
        }
        for node in range(problem.n_nodes)
    }
    return {"nodes": nodes, "root_eclasses": [str(problem.root)]}


@pytest.mark.parametrize(
    "module", ["relational_tensat.cli.main", "relational_tensat.cli.rules_text"]
)
def test_while_modules_are_imported_it_ends_the_process(module: str, tmp_path: Path) -> None:
    """Pressed by the import of a module itself: the first after __main__, and one of a command."""
    code = f"""
import os, signal, sys
class Pressing:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressing())
sys.argv = ["relational-tensat", "rules", "show", "cube"]
from relational_tensat.__main__ import process
process()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "relational-tensat: interrupted\n"


def test_before_anything_else_is_imported_it_ends_the_process() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "relational_tensat", "rules", "list"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        first = next(line for line in process.stderr if line.endswith("relational_tensat.ctrl_c\n"))
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait() == 130, first + rest
    assert "Traceback" not in rest


def test_where_it_is_ignored_it_stays_so() -> None:
    code = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
class Pressing:
    def find_spec(self, name, *_):
        os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressing())
sys.argv = ["relational-tensat", "rules", "show", "cube"]
from relational_tensat.__main__ import process
process()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
