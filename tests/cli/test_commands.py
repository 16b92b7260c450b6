"""The commands as a user runs them: streams, exit codes, files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from relational_tensat.cli.main import main
from relational_tensat.formats import load_model, save_model
from tests.cli.schema import check_schema
from tests.graphs import fan_of_matmuls, shared_matmuls


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "pair.json"
    save_model(shared_matmuls(with_data=True), path)
    return path


def shell(*argv: object, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "relational_tensat", *map(str, argv)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **env},
    )


def test_run_prints_the_report_and_writes_into_the_current_folder(model: Path) -> None:
    done = shell("run", model, "--cost", "tensat_t4", "--search", "saturation")
    assert done.returncode == 0, done.stderr
    assert "modelled for tensat_t4, not timed here" in done.stdout
    assert "written to pair.opt.json" in done.stdout
    assert "explore …" in done.stderr and "iteration" not in done.stderr  # that is for -v
    assert "\x1b" not in done.stdout + done.stderr  # a pipe is no terminal
    assert load_model(model.with_name("pair.opt.json")).output_types()
    assert not [path for path in model.parent.iterdir() if path.name.startswith(".")]


def test_run_writes_into_no_other_folder_and_over_nothing(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = model.parent / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    argv = ["run", str(model), "--quiet", "--iterations", "1"]
    assert main(argv) == 0
    assert [path.name for path in model.parent.iterdir() if path.is_file()] == [model.name]
    output = here / "pair.opt.json"
    output.write_text("another's")
    assert main(argv) == 2
    assert capsys.readouterr().err == (
        "relational-tensat: pair.opt.json: exists already; -o names another file, "
        "--force replaces this one\n"
    )
    assert output.read_text() == "another's"
    assert main([*argv, "-o", "other.json"]) == 0
    assert main([*argv, "--force"]) == 0
    assert output.read_bytes() == (here / "other.json").read_bytes()


def test_json_is_one_object_on_stdout(model: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    few = ("--search", "saturation", "--set", "verify-runs=1")
    done = shell("run", model, "--json", "-v", "-o", output, *few)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    check_schema(report)
    assert report["model"] == str(model)
    assert report["output"] == str(output)
    assert report["verified"]["ok"] is True
    assert "iteration 1:" in done.stderr


def test_quiet_is_one_line(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(model), "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == 1
    assert main(["run", str(model), "--quiet", "--json", "--force"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    check_schema(json.loads(out))


def test_the_same_seed_gives_the_same_result(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = []
    for name in ("a.json", "b.json"):
        output = model.with_name(name)
        assert main(["run", str(model), "--quiet", "--seed", "3", "-o", str(output)]) == 0
        results.append(output.read_text())
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "empty"), (b"{", ""), (b"\xff\xfe\x00", "UTF-8"), (b"[]", ""), (b'{"format": 1}', "")],
)
def test_bad_models_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, reason: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    assert main(["run", str(path)]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert str(path) in err
    assert reason in err
    assert [file.name for file in tmp_path.iterdir()] == ["bad.json"]


def test_a_mismatch_is_exit_code_4_and_no_file(
    model: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rules = tmp_path / "wrong.rules"
    rules.write_text('(rule wrong (law "a + b = a") (unsound) (from (add ?a ?b)) (to ?a))')
    argv = ["run", str(model), "--rules", str(rules), "--quiet"]
    assert main(argv) == 3
    assert "unsound" in capsys.readouterr().err
    assert main([*argv, "--allow-unsound", "--strict"]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "relative error" in err
    assert not model.with_name("pair.opt.json").exists()


def test_convert_there_and_back(model: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    there, back = tmp_path / "m.onnx", tmp_path / "back.json"
    assert main(["convert", str(model), str(there)]) == 0
    assert main(["convert", str(there), str(back)]) == 0
    assert load_model(back).count_ops() == load_model(model).count_ops()
    assert main(["convert", str(model), str(tmp_path / "m.txt")]) == 2
    assert main(["convert", str(model), str(model)]) == 2


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("db")
    save_model(shared_matmuls(), folder / "m.json")
    flags = ["--db", str(folder / "run.duckdb"), "-o", str(folder / "o.json"), "--quiet"]
    assert main(["run", str(folder / "m.json"), *flags]) == 0
    return folder / "run.duckdb"


def test_inspect(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(database), "--classes", "3"]) == 0
    text = capsys.readouterr().out
    assert "biggest e-classes (showing 3 of" in text
    assert "growth per iteration" in text
    assert main(["inspect", str(database), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert set(report) == {"sizes", "classes", "rules", "growth"}
    assert report["sizes"]["e-nodes"] >= report["growth"][0]["e_nodes"] > 0
    assert report["rules"][0]["matches"] > 0
    matches = [rule["matches"] for rule in report["rules"]]
    assert matches == sorted(matches, reverse=True)
    sizes = [entry["e_nodes"] for entry in report["classes"]]
    assert sizes == sorted(sizes, reverse=True)


def test_inspect_wants_a_runs_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import duckdb

    other = tmp_path / "other.duckdb"
    duckdb.connect(str(other)).close()
    assert main(["inspect", str(other)]) == 3
    assert "not a database of a run" in capsys.readouterr().err
    junk = tmp_path / "junk.duckdb"
    junk.write_bytes(b"not a database" * 100)
    assert main(["inspect", str(junk)]) == 3
    assert capsys.readouterr().err.count("\n") == 1


def test_sql(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = (
        "SELECT op, count(*) AS n FROM enode_text WHERE rule = 'original' GROUP BY op ORDER BY op"
    )
    assert main(["sql", str(database), query]) == 0
    assert "matmul" in capsys.readouterr().out
    assert main(["sql", str(database), query, "--csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "op,n"
    assert "matmul,2" in lines
    assert main(["sql", str(database), query, "--json"]) == 0
    assert {"op": "matmul", "n": 2} in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT nothing FROM enode",
        "SELEC 1",
        "DELETE FROM enode",
        "CREATE TABLE t (x INTEGER)",
        "COPY (SELECT 1) TO 'stolen.csv'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SET enable_external_access = true",
        "ATTACH 'other.duckdb' AS other",
    ],
)
def test_sql_is_read_only_and_errors_are_one_line(
    database: Path, capsys: pytest.CaptureFixture[str], query: str
) -> None:
    before = database.read_bytes()
    assert main(["sql", str(database), query]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert str(database) in err
    assert database.read_bytes() == before
    assert not Path("stolen.csv").exists()


def test_a_closed_pipe_is_no_error(database: Path) -> None:
    query = "SELECT * FROM range(200000)"
    program = f"{sys.executable} -m relational_tensat sql {database} '{query}' --csv | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout == "range\n"
    assert done.stderr == ""
    assert done.returncode == 0


def test_rules(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["rules"]) == 0
    text = capsys.readouterr().out
    assert "rules, " in text.splitlines()[-1]
    name = text.splitlines()[3].split()[0]
    assert main(["rules", "show", name]) == 0
    assert f"(rule {name}" in capsys.readouterr().out
    assert main(["rules", "show", name, "--sql"]) == 0
    assert "FROM enode AS n0" in capsys.readouterr().out
    assert main(["rules", "show", name[:-1]]) == 2
    assert f"did you mean {name!r}" in capsys.readouterr().err
    good = tmp_path / "good.rules"
    good.write_text(
        '(rule twice (law "relu(relu(x)) = relu(x)") (from (relu (relu ?x))) (to (relu ?x)))'
    )
    assert main(["rules", "check", str(good)]) == 0
    assert "1 rule, well-formed" in capsys.readouterr().out
    good.write_text('(rule twice (law "")\n (from (rela ?x)) (to ?x))')
    assert main(["rules", "check", str(good)]) == 3
    err = capsys.readouterr().err
    assert f"{good}:2: " in err
    assert "did you mean" in err


def test_ctrl_c_ends_the_exploration_and_extracts_from_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "fan.json"
    save_model(fan_of_matmuls(10), path)
    argv = ["run", path, "--json", "-v", "--multi-iterations", 15, "--node-limit", 10_000_000]
    argv += ["--extractor", "greedy-dag", "--time-limit", 60, "-o", tmp_path / "out.json"]
    command = [sys.executable, "-m", "relational_tensat", *map(str, argv)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        while "iteration 1:" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        report = json.loads(process.stdout.read())
        assert process.wait() == 0
    check_schema(report)
    assert report["stop_reason"] == "interrupted"
    assert report["verified"]["ok"] is True


def test_sizes_that_nobody_gave_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 4]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), "m.onnx")
    assert main(["run", "m.onnx", "--for", "t4"]) == 0
    assert "no --dim given: sizes chosen are batch=3" in capsys.readouterr().out
    assert main(["run", "m.onnx", "--for", "t4", "--force", "--dim", "batch=2"]) == 0
    assert "no --dim" not in capsys.readouterr().out
