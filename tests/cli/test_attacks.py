"""What goes wrong around the program is one line and an exit code, never an internal error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from onnx import TensorProto, helper

from bench.mutations.seeds import onnx_models
from relational_tensat.base.errors import InputError
from relational_tensat.cli.main import main
from relational_tensat.egraph.database import Database
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize
from tests.formats.onnx_tools import model, tensor

_QUICK = ["--for", "t4", "--iterations", "1", "--allow-unsound", "--quiet"]


def _model(folder: Path) -> Path:
    path = folder / "windows.onnx"
    path.write_bytes(onnx_models()["windows"].SerializeToString())
    return path


def _line(capsys: pytest.CaptureFixture[str], *argv: object, code: int = 3) -> str:
    """Run a command line that must end with ``code`` and one line on stderr; return it."""
    assert main([str(argument) for argument in argv]) == code
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    return lines[0]


def _process(*argv: object, cwd: Path, **streams: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "relational_tensat", *map(str, argv)]
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    return subprocess.run(
        command, cwd=cwd, env=environment, stderr=subprocess.PIPE, text=True, check=False, **streams
    )  # type: ignore[call-overload, no-any-return]


def test_terms_that_nest_too_deeply(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "deep.rules"
    rules.write_text("(=> deep " + "(relu " * 20_000 + "?x" + ")" * 20_000 + " ?x)\n")
    assert "deep.rules:1: more than 100 brackets" in _line(capsys, "rules", "check", rules)


def test_a_query_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, db = _model(tmp_path), tmp_path / "a.duckdb"
    assert main(["run", str(source), "-o", str(tmp_path / "o.onnx"), "--db", str(db), *_QUICK]) == 0
    capsys.readouterr()
    for query in ("", " ", "-- nothing", ";"):
        assert "the query is empty" in _line(capsys, "sql", db, query, code=2)


def test_another_runs_database_is_replaced_only_by_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, db = _model(tmp_path), tmp_path / "a.duckdb"
    command = ["run", source, "-o", tmp_path / "o.onnx", "--db", db, *_QUICK]
    assert main([*map(str, command)]) == 0
    capsys.readouterr()
    before = db.read_bytes()
    assert "--force replaces it" in _line(capsys, *command, code=2)
    assert db.read_bytes() == before
    assert main([*map(str, command), "--force"]) == 0


def test_the_database_of_something_else_is_not_even_replaced_by_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, db = _model(tmp_path), tmp_path / "mine.duckdb"
    with duckdb.connect(str(db)) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 1 AS x")
    before = db.read_bytes()
    for force in ([], ["--force"]):
        command = ["run", source, "-o", tmp_path / "o.onnx", "--db", db, *_QUICK, *force]
        assert "not that of a run" in _line(capsys, *command, code=2)
    assert db.read_bytes() == before


def test_a_database_in_use_is_left_alone(tmp_path: Path) -> None:
    """By another process, which DuckDB's lock tells, or by this one."""
    source, db = _model(tmp_path), tmp_path / "a.duckdb"
    options = Options.of(cost="t4", db=db, force=True, iterations=1, allow_unsound=True)
    optimize(source, options)
    program = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True);"
        " sys.stdin.read(); print(c.execute('SELECT count(*) FROM rule').fetchall())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(db)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(InputError, match="in use by another process"):
            optimize(source, options)
        assert other.communicate("")[0].startswith("[(")
    database = Database(db, keep=True)
    with pytest.raises(InputError, match="another run of this process"):
        Database(db)
    database.close()
    optimize(source, options)


def test_an_onnx_file_in_place_of_a_database_or_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = _model(tmp_path)
    fake = tmp_path / "fake.duckdb"
    fake.write_bytes(source.read_bytes())
    for command in (["inspect"], ["explain"], ["run", "--resume"]):
        assert str(fake) in _line(capsys, *command, fake)
    assert str(fake) in _line(capsys, "sql", fake, "SELECT 1")
    assert str(source) in _line(capsys, "rules", "check", source)
    assert str(source) in _line(capsys, "run", source, "-o", tmp_path / "o.onnx", "--rules", source)
    assert "not a database" in _line(
        capsys, "run", source, "-o", tmp_path / "o.onnx", "--db", fake, code=2
    )


def test_shapes_too_large_to_compute_are_not_allocated(tmp_path: Path) -> None:
    shape = [100_000, 100_000]
    huge = model(
        [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Relu", ["r"], ["y"])],
        [tensor("x", shape)],
        [tensor("y", shape)],
    )
    source = tmp_path / "huge.onnx"
    source.write_bytes(huge.SerializeToString())
    result = optimize(source, Options.of(cost="t4", iterations=1), output=tmp_path / "o.onnx")
    assert result.verification.runs == 0
    sentence = " ".join((*result.verification.warnings, *result.notes))
    assert "GiB, the machine has" in sentence, sentence


def test_a_scalar_input_stays_a_scalar(tmp_path: Path) -> None:
    scalar = model(
        [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Relu", ["r"], ["y"])],
        [tensor("x", [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
    )
    source = tmp_path / "scalar.onnx"
    source.write_bytes(scalar.SerializeToString())
    result = optimize(source, Options.of(cost="t4", iterations=1), output=tmp_path / "o.onnx")
    assert {check.setting.what for check in result.verification.outputs} >= {
        "onnxruntime, the two files"
    }


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_standard_output_that_takes_nothing(tmp_path: Path) -> None:
    """A full one is one line and exit 3, a closed one, too; a reader that has enough is no error."""
    with Path("/dev/full").open("w") as full:
        done = _process("rules", "list", cwd=tmp_path, stdout=full)
    assert (done.returncode, len(done.stderr.splitlines())) == (3, 1)
    assert "No space left on device" in done.stderr
    shell = f"{sys.executable} -m relational_tensat rules list"
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    for end, code in ((">&-", 3), ("| head -1; exit ${PIPESTATUS[0]}", 0)):
        ran = subprocess.run(
            ["bash", "-c", f"{shell} {end}"], capture_output=True, text=True, check=False,
            cwd=tmp_path, env=environment,
        )  # fmt: skip
        assert ran.returncode == code, (end, ran.stderr)
        assert len(ran.stderr.splitlines()) == (1 if code else 0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_standard_error_that_takes_nothing(tmp_path: Path) -> None:
    """Progress that nobody can see ends no run."""
    source = _model(tmp_path)
    for number, end in enumerate(("2>&-", "2>/dev/full")):
        target = tmp_path / f"{number}.onnx"
        flags = "--iterations 1 --allow-unsound --effort low --set verify-runs=1"
        command = f"{sys.executable} -m relational_tensat run {source} -o {target} {flags} {end}"
        environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
        ran = subprocess.run(
            ["bash", "-c", command], env=environment, check=False, stdout=subprocess.DEVNULL
        )
        assert ran.returncode == 0
        assert target.exists()


def test_a_cache_folder_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    line = _line(
        capsys, "run", _model(tmp_path), "-o", tmp_path / "o.onnx", "--cost", "cpu",
        "--cost-cache", blocked / "costs.duckdb", *_QUICK,
    )  # fmt: skip
    assert str(blocked) in line
