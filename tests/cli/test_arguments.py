"""What the command line refuses, and how it says so: one line, the nearest name, the exit code."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from bench.models import GraphBuilder
from relational_tensat import __version__
from relational_tensat.base.errors import MissingDependencyError
from relational_tensat.base.option import options_in
from relational_tensat.base.process import ProcessOptions
from relational_tensat.cli import mugraphs
from relational_tensat.cli.commands import COMMANDS, GROUPS, build_parser, command_and_rest
from relational_tensat.cli.main import main
from relational_tensat.cli.run import _options
from relational_tensat.explore import ExplorationOptions
from relational_tensat.extract import ExtractionOptions
from relational_tensat.formats import save_model
from relational_tensat.mugraph.kernels import emission
from relational_tensat.run.options import (
    CostOptions,
    ModelOptions,
    Options,
    OutputOptions,
    RuleOptions,
    VerificationOptions,
)

MODEL = Path(__file__).parents[2] / "bench" / "inputs" / "nasrnn.json"


def refused(capsys: pytest.CaptureFixture[str], *argv: str, code: int = 2) -> str:
    """Run the command line, which must end with ``code`` and one line on stderr; return it."""
    assert main(argv) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("relational-tensat: ")
    return err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["rn", "m.json"], "unknown command 'rn', expected one of run, .*did you mean 'run'"),
        (["--json", "run", "m.json"], "--json: expected a command first"),
        (["kernels", "serch"], "unknown command 'kernels serch'.*did you mean 'search'"),
        (["rules", "--sql", "show", "cube"], "--sql: flags come after both words: rules show"),
        (["kernels", "--json"], "unknown command 'kernels --json'"),
        (["derive"], "did you mean 'rules derive'"),
        (["m.onnx"], "did you mean 'relational-tensat run m.onnx'"),
        (["run"], "MODEL"),
        (["run", "m.json", "--iteration", "3"], "'--iteration'; did you mean '--iterations'"),
        (["run", "m.json", "--tme-limit=3"], "did you mean '--time-limit'"),
        (["run", "m.json", "--iterations", "x"], "'x' is not a whole number"),
        (
            ["run", "m.json", "--iterations", "-1"],
            "'-1' is not a whole number|expected one argument",
        ),
        (["run", "m.json", "--node-limit", "0"], "node_limit = 0"),
        (["run", "m.json", "--threads", "0"], "threads = 0"),
        (["run", "m.json", "--time-limit", "nan"], "'nan' is not a number of seconds"),
        (["run", "m.json", "--time-limit", "-1"], "'-1' is not a number|expected one argument"),
        (
            ["run", "m.json", "--set", "tree-discount=x"],
            "tree-discount: 'x' is not a number, 0 or more",
        ),
        (["run", "m.json", "--set", "race-again=x"], "'x' is neither yes nor no"),
        (["run", "m.json", "--set", "race-agin=yes"], "did you mean 'race-again'"),
        (["run", "m.json", "--set", "race-again"], "expected NAME=VALUE"),
        (["run", "m.json", "-q", "--verbose"], "--quiet and --verbose are both given"),
        (["run", str(MODEL), "--set", "kernels-torch=yes"], "kernels-torch goes with --fuse"),
        (["run", "m.json", "--memory-limit", "lots"], "memory_limit = 'lots'.*'2GB'"),
        (["run", "m.json", "--cycle-filter", "vanila"], "did you mean 'vanilla'"),
        (["run", "m.json", "--extractor", "gredy"], "did you mean 'greedy'"),
        (["run", "m.json", "--set", "ilp-cycles=reel"], "did you mean 'real'"),
        (["run", "m.json", "--dim", "batch"], "'batch' is not NAME=SIZE"),
        (["run", "m.json", "--dim", "batch=-1"], "'-1' is not a whole number, 0 or more"),
        (["run", "m.json", "--dim", "b=1", "--dim", "b=2"], "'b' is given twice, as 1 and 2"),
        (["run", "m.json", "--input", "x"], "'x' is not NAME=FILE.npy"),
        (["run", str(MODEL), "--cost", "t5"], "unknown cost profile 't5'.*did you mean 't4'"),
        (["run", "m.json", "more"], "unknown argument 'more'"),
        (["run", "m.json", str(MODEL)], "unknown argument '.*[.]json' [(]see"),
        (["run", "m.json", "--verbos"], "did you mean '--verbose'"),
        (["run", "m.json", "--cpu"], "did you mean '--for onnxruntime'"),
        (["run", "m.json", "--batch_size", "3"], "did you mean '--dim'"),
        (["run", "m.json", "fuse"], "did you mean '--fuse'"),
        (["run", "m.json", "-x"], "unknown argument '-x' [(]see"),
        (["run", str(MODEL), "--cost", "gpu"], "did you mean 'cuda'"),
        (["run", str(MODEL), "--for", "gpu"], "did you mean 'cuda'"),
        (["run", "m.json", "--backend", "ort"], "did you mean 'onnxruntime'"),
        (["optimize", "m.json"], "did you mean 'run'"),
        (["fuse"], "did you mean 'run MODEL --fuse'"),
        (["rules", "show", "silu"], "did you mean 'ort-silu'"),
        (["run", "m.pt"], "m.pt: PyTorch's, expected a .onnx file: torch.onnx.export"),
        (["run", "m.tflite"], "m.tflite: TensorFlow's, .* python -m tf2onnx.convert"),
        (["run", "run.duckdb"], "run --resume continues a run"),
        (["sql", "db"], "QUERY"),
        (["rules", "shaw"], "did you mean 'show'"),
        (["rules", "show"], "required: NAME"),
        (["rules", "check"], "required: FILE"),
        (["rules", "list", "x"], "unknown argument 'x'"),
    ],
)
def test_usage_errors(capsys: pytest.CaptureFixture[str], argv: list[str], message: str) -> None:
    assert re.search(message, refused(capsys, *argv))


def test_bad_input_is_exit_code_3(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    missing = str(tmp_path / "absent.json")
    assert missing in refused(capsys, "run", missing, code=3)
    assert "no such database" in refused(capsys, "sql", missing, "SELECT 1", code=3)
    assert "no such database" in refused(capsys, "inspect", missing, code=3)


def test_flags_become_options() -> None:
    args = build_parser().parse_args(
        shlex.split(
            "run m.onnx --rules a --rules b --only r --skip s --skip t --iterations 3"
            " --multi-iterations 2 --set multi-schedule=first"
            " --node-limit 1000 --time-limit 1.5 --memory-limit 2GB"
            " --set temp_directory=spill --set extract-time-limit=9"
            " --cycle-filter none --extractor greedy-dag --set ilp-cycles=int"
            " --cost cpu --dim batch=1,seq=128 --dim h=7 --db x.duckdb --seed 5 --threads 2"
            " --input x=x.npy --set verify-runs=1 --allow-unsound"
        )
    )
    options = _options(args)
    assert options == Options(
        model=ModelOptions(dims={"batch": 1, "seq": 128, "h": 7}),
        rules=RuleOptions((Path("a"), Path("b")), ("r",), ("s", "t"), allow_unsound=True),
        exploration=ExplorationOptions(
            3, 2, "first", node_limit=1000, time_limit_s=1.5, cycle_filter="none"
        ),
        extraction=ExtractionOptions("greedy-dag", "int", time_limit_s=9.0),
        costs=CostOptions("cpu"),
        verification=VerificationOptions(inputs={"x": Path("x.npy")}, runs=1),
        output=OutputOptions(db=Path("x.duckdb")),
        process=ProcessOptions(2, 5, "2GB", Path("spill")),
    )


def test_without_flags_the_defaults_hold() -> None:
    assert _options(build_parser().parse_args(["run", "m.json"])) == Options()


def test_the_options_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "options"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["properties"]["exploration"]["properties"]["node_limit"]["default"] == 50_000


@pytest.mark.parametrize(
    "line", ["--version", "-V", "version", "run --version", "rules list -V", "costs -V"]
)
def test_version(capsys: pytest.CaptureFixture[str], line: str) -> None:
    assert main(line.split()) == 0
    assert capsys.readouterr().out == f"relational-tensat {__version__}\n"


@pytest.mark.parametrize("line", ["", "--help", "-h", "help", "-q --help"])
def test_the_first_help_is_one_screen(capsys: pytest.CaptureFixture[str], line: str) -> None:
    assert main(line.split()) == 0
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) <= 24
    assert max(map(len, printed.splitlines())) <= 100
    for name in (*COMMANDS, *GROUPS):
        assert " " in name or f"\n  {name} " in printed


@pytest.mark.parametrize("group", GROUPS)
def test_groups_list_their_commands(capsys: pytest.CaptureFixture[str], group: str) -> None:
    for line in ([group, "--help"], ["help", group], ["-v", group, "-q", "-h"]):
        assert main(line) == 0
        printed = capsys.readouterr().out
        for name in COMMANDS:
            assert (f"\n  {name} " in printed) == name.startswith(group)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_its_two_functions(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    for line in ([*name.split(), "--help"], ["help", *name.split()]):
        assert main(line) == 0
        printed = capsys.readouterr().out
        assert printed.startswith(f"usage: relational-tensat {name}")
        assert max(map(len, printed.splitlines())) <= 100
    command = COMMANDS[name]
    assert callable(command._named(command.function))


def test_the_help_of_run_is_short_and_each_of_its_examples_is_a_line_that_is_understood(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", "--help"]) == 0
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) <= 24
    examples = re.findall(r"^  (-\S+(?: \S+)?)  ", printed, re.MULTILINE)
    assert len(examples) == 10
    for example in examples:
        _options(build_parser(["run"]).parse_args(["run", "m.onnx", *example.split()]))
    assert "--help-all" in printed


def test_all_options_of_run_are_at_most_45(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--help-all"]) == 0
    printed = capsys.readouterr().out
    flags = re.findall(r"^  (-\S+)", printed, re.MULTILINE)
    assert len(flags) <= 45
    for _, option in options_in(Options):
        shown = f"\n  {option.text_name}=" if option.about.is_rare else option.flag
        assert shown in printed


def test_quiet_and_verbose_may_stand_before_a_command_and_after_it() -> None:
    for line in ("-q run m.json", "run -q m.json", "run m.json --quiet"):
        name, rest = command_and_rest(line.split())
        args = build_parser([name]).parse_args([name, *rest])
        assert args.quiet and not args.details
    for line in ("rules -q verify", "-q rules verify"):
        assert command_and_rest(line.split()) == ("rules verify", ["-q"])
    for line in ("-v run m.json", "--details run m.json", "run --verbose m.json"):
        name, rest = command_and_rest(line.split())
        args = build_parser([name]).parse_args([name, *rest])
        assert args.details and not args.quiet
    for name in COMMANDS:
        parser = build_parser([name])
        (commands,) = (action for action in parser._actions if isinstance(action.choices, dict))
        assert {"-q", "--quiet", "-v", "--verbose", "--details"} <= set(
            commands.choices[name].flags
        )


def test_the_process_ends_without_being_taken_apart() -> None:
    code = (
        "import atexit, sys; from relational_tensat.cli.main import process;"
        "atexit.register(print, 'taken apart'); sys.argv[1:] = {argv}; process()"
    )
    for argv, exit_code, out in (
        (["--version"], 0, f"relational-tensat {__version__}\n"),
        (["rum"], 2, ""),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code.format(argv=argv)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (exit_code, out)
        assert bool(done.stderr) == bool(exit_code)


def test_help_is_quick_and_imports_nothing_heavy() -> None:
    code = (
        "import sys; from relational_tensat.cli.main import main;"
        "from relational_tensat.cli.commands import COMMANDS;"
        "code = sum(main([*name.split(), '--help']) for name in COMMANDS) + main(['run', '--help-all']);"
        f"heavy = {HEAVY} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    started = time.process_time()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--node-limit" in done.stdout
    assert time.process_time() - started < 1.0


def test_choices_that_the_command_line_repeats_are_those_that_there_are() -> None:
    assert mugraphs.TARGETS == emission.TARGETS


def test_lists_of_words_load_no_database() -> None:
    code = (
        "import sys; from relational_tensat.cli.main import main;"
        "code = sum(main(words) for words in (['rules', 'functions'], ['rules', 'operators'],"
        " ['rules', 'show', 'cube'], ['schema', 'options'], ['example']));"
        "sys.exit(code or int('_duckdb' in sys.modules or 'onnx' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


#: What takes long to import.
HEAVY = {"numpy", "_duckdb", "duckdb", "onnx", "highspy", "rich", "pyarrow"}

#: What a plain run has no use for: each of them would take a part of its start.
UNUSED = {
    "difflib", "duckdb", "hypothesis", "onnx", "onnxruntime", "platformdirs", "pyarrow", "sqlite3",
    "relational_tensat.cli.databases", "relational_tensat.cli.rules",
    "relational_tensat.cost.cpu", "relational_tensat.cost.cuda",
    "relational_tensat.explain", "relational_tensat.gpu",
    "relational_tensat.formats.onnx_read",
    "relational_tensat.run.resume.record", "relational_tensat.run.resume.run_tables",
    "relational_tensat.rules.soundness.parallel", "relational_tensat.rules.soundness.rule_verification",
}  # fmt: skip


def test_a_plain_run_imports_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    builder = GraphBuilder("g")
    save_model(builder.build(builder.op("relu", builder.input("x", 4))), path)
    code = (
        "import sys; from relational_tensat.cli.main import main; "
        f"code = main(['run', {str(path)!r}, '-o', {str(tmp_path / 'o.json')!r}, '--quiet']); "
        f"sys.exit(code or ' '.join(sorted({UNUSED} & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in UNUSED:  # what is gone or has another name would never be found
        assert find_spec(name) is not None, name


@pytest.mark.parametrize(
    ("name", "exit_code", "message"),
    [
        ("none.json", 3, "none.json: no such file"),
        (".", 3, ".: is a folder, expected a model file; it has folder.onnx"),
        ("absent", 3, "absent: no such file, expected a .onnx or .json model"),
        (
            "m.jsn",
            2,
            "m.jsn: the suffix '.jsn' is not one of .json and .onnx; did you mean '.json'?",
        ),
        ("folder.onnx", 3, "folder.onnx: is a folder, expected a model file; it has no .onnx file"),
    ],
)
def test_a_model_that_is_none_is_refused_before_anything_heavy_is_imported(
    tmp_path: Path, name: str, exit_code: int, message: str
) -> None:
    (tmp_path / "folder.onnx").mkdir()
    code = (
        f"import sys; from relational_tensat.cli.main import main; code = main(['run', {name!r}]);"
        f"sys.exit(99 if {HEAVY} & set(sys.modules) else code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (exit_code, f"relational-tensat: {message}\n")


def test_internal_errors_are_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(args: object) -> int:
        raise KeyError("boom")

    monkeypatch.delenv("RELATIONAL_TENSAT_DEBUG", raising=False)
    monkeypatch.setattr("relational_tensat.cli.run.run", broken)
    line = refused(capsys, "run", "m.json", code=1)
    assert "internal error: KeyError: 'boom'" in line
    assert "RELATIONAL_TENSAT_DEBUG=1" in line
    monkeypatch.setenv("RELATIONAL_TENSAT_DEBUG", "1")
    assert main(["run", "m.json"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_packages_that_are_missing_are_named_with_their_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(args: object) -> int:
        raise ModuleNotFoundError("No module named 'z3'", name="z3")

    monkeypatch.setattr("relational_tensat.cli.run.run", broken)
    line = refused(capsys, "run", "m.json", code=MissingDependencyError.exit_code)
    assert "this needs z3: pip install 'relational-tensat[proofs]'" in line


def test_ctrl_c_is_130(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(args: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("relational_tensat.cli.run.run", interrupted)
    assert "interrupted" in refused(capsys, "run", "m.json", code=130)


def test_without_onnx_its_files_end_in_one_line_that_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"")
    code = (
        "import sys; sys.modules['onnx'] = None; from relational_tensat.cli.main import main; "
        "sys.exit(main(['run', 'm.onnx', '-o', 'o.onnx']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("relational-tensat:"))
    assert line.endswith("ONNX files need onnx: pip install 'relational-tensat[onnx]'")
    assert done.returncode == MissingDependencyError.exit_code
