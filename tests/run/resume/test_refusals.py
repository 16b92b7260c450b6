"""What is no run that can be resumed is refused in one line, and left as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.cli.main import main
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.formats import save_model
from relational_tensat.run.resume.run_tables import read_run
from tests.explore.example_rules import example_rules
from tests.graphs import shared_matmuls

NOT_BEGUN = "the run was killed before exploration had begun: start it again"


def refusal(path: Path) -> str:
    """Return why a file is refused, without its name."""
    with pytest.raises(InputError) as error:
        read_run(path)
    text = str(error.value)
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


def test_no_file_and_a_file_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "run.duckdb"
    assert refusal(path) == "no such database file"
    assert refusal(tmp_path) == "no such database file"
    path.write_text("a text, and a rather long one")
    assert refusal(path) == "not a database"
    assert path.read_text() == "a text, and a rather long one"


def test_a_damaged_file_is_not_called_one_in_use(tmp_path: Path) -> None:
    path = tmp_path / "run.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE meta AS SELECT range AS key FROM range(100000)")
    content = bytearray(path.read_bytes())
    for place in range(12288, len(content), 4096):
        content[place] ^= 1
    path.write_bytes(content)
    text = refusal(path)
    assert "checksum" in text
    assert "another process" not in text


@pytest.mark.parametrize("size", [0, 4096, 12287])
def test_a_file_that_was_not_finished_being_made(size: int, tmp_path: Path) -> None:
    path = tmp_path / "run.duckdb"
    duckdb.connect(str(path)).close()
    path.write_bytes(path.read_bytes()[:size])
    assert refusal(path) == NOT_BEGUN
    model = tmp_path / "pair.json"
    save_model(shared_matmuls(with_data=True), model)
    flags = ["--force", "--quiet", "-o", str(tmp_path / "o.json")]
    assert main(["run", str(model), "--db", str(path), *flags]) == 0


def test_a_database_before_the_first_commit(tmp_path: Path) -> None:
    path = tmp_path / "run.duckdb"
    duckdb.connect(str(path)).close()
    assert refusal(path) == NOT_BEGUN


def test_a_database_before_exploration(tmp_path: Path) -> None:
    path = tmp_path / "run.duckdb"
    EGraph.create(shared_matmuls(), path).close()
    assert refusal(path) == NOT_BEGUN


def test_an_e_graph_that_no_run_has_made(tmp_path: Path) -> None:
    path = tmp_path / "run.duckdb"
    egraph = EGraph.create(shared_matmuls(), path)
    explore(egraph, example_rules("twice"), ExplorationOptions(2))
    egraph.close()
    assert refusal(path) == "the e-graph was not made by a run: nothing records how to resume it"


def test_a_database_of_others_and_one_of_another_version(tmp_path: Path) -> None:
    path = tmp_path / "run.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (i INTEGER)")
    assert refusal(path) == "not the database of a run of this program"
    EGraph.create(shared_matmuls(), path).close()
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE meta SET value = '1' WHERE key = 'format_version'")
    assert refusal(path).startswith("the database has format 1, expected ")


def test_a_run_that_still_runs(tmp_path: Path) -> None:
    path = tmp_path / "run.duckdb"
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        message = refusal(path)
        process.kill()
    assert message == "cannot be opened: another process uses it: does the run still use it?"


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["run"], 2, "expected MODEL, or --resume DB"),
        (["run", "--resume", "no.duckdb"], 3, "no.duckdb: no such database file"),
        (["run", "--resume", "no.duckdb", "--cost", "t4"], 2, "--cost cannot be given"),
        (["run", "--resume", "no.duckdb", "--dim=n=1"], 2, "--dim cannot be given"),
        (["run", "--resume", "no.duckdb", "--search=mcts"], 3, "no.duckdb: no such database file"),
    ],
)
def test_the_command_line(
    argv: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
