"""Options are checked when they are made, and a new one is one line in one place."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from relational_tensat.base.errors import UsageError
from relational_tensat.base.option import (
    OptionGroup,
    OptionTree,
    from_json,
    option,
    options_in,
    options_of,
    options_schema,
    to_json,
)
from relational_tensat.base.outputs import (
    DefaultOutput,
    check_database,
    default_output,
)
from relational_tensat.cli.parser import Parser, add_tree, written_values
from relational_tensat.formats.frontend import check_output
from relational_tensat.run.options import Options, with_short_limits
from relational_tensat.run.pipeline import optimize
from relational_tensat.run.progress import Silent
from relational_tensat.run.request import Run
from tests.cost.fakes import FakeDevice, plug_in
from tests.graphs import shared_matmuls

DEFAULTS: dict[str, float | None] = {"time_limit_s": 60.0, "extract_time_limit_s": 60.0}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"extractor": "ilb"}, "unknown extractor 'ilb'.*did you mean 'ilp'"),
        ({"cycle_filter": "eficient"}, "did you mean 'efficient'"),
        ({"multi_schedule": "frist"}, "did you mean 'first'"),
        ({"ilp_cycles": "integer"}, "expected one of auto, order, cuts, real, int, none"),
        ({"iterations": -1}, "iterations = -1, expected a whole number, at least 0"),
        ({"iterations": 1.5}, "iterations = 1.5"),
        ({"node_limit": 0}, "node_limit = 0"),
        ({"threads": True}, "threads = True"),
        ({"time_limit_s": float("nan")}, "time_limit_s = nan"),
        ({"time_limit_s": -1.0}, "time_limit_s = -1.0, expected a number of seconds, at least 0"),
        ({"extract_time_limit_s": float("inf")}, "extract_time_limit_s = inf"),
        ({"memory_limit": "2"}, "memory_limit = '2'"),
        ({"dims": {"batch": -1}}, "the dimension 'batch' = -1"),
        ({"db": 3}, "db = 3, expected a path"),
        ({"view": ""}, "view = '', expected a path"),
        ({"rules": [3]}, "rules = 3, expected a path"),
        ({"only": 3}, "only = 3, expected a list"),
        ({"nodelimit": 7}, "unknown option 'nodelimit'; did you mean 'node_limit'"),
    ],
)
def test_wrong_values(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Options.of(**wrong)


@pytest.mark.parametrize("text", ["2GB", "1.5 GiB", "500mb"])
def test_memory_limits(text: str) -> None:
    assert Options.of(memory_limit=text).process.memory_limit == text


def test_a_text_stands_for_a_path_and_one_of_several_for_them_all() -> None:
    """Of whatever option has paths, in ``Options.of`` and in its group."""
    checked = 0
    for group, choice in options_in(Options):
        if choice.kind is Path:
            shape: dict[str, Any] = {"tuple": ("a/b",), "mapping": {"x": "a/b"}}
            given = shape.get(choice.container, "a/b")
            path = {"tuple": (Path("a/b"),), "mapping": {"x": Path("a/b")}}
            expected = path.get(choice.container, Path("a/b"))
            options = Options.of(**{choice.name: given})
            assert getattr(getattr(options, group), choice.field) == expected
            made = type(getattr(Options(), group))(**{choice.field: given})
            assert getattr(made, choice.field) == expected
            checked += 1
    assert checked >= 5
    alone = Options.of(rules="mine.rules", only="a-rule")
    assert (alone.rules.files, alone.rules.only) == ((Path("mine.rules"),), ("a-rule",))
    assert Options.of(rules=["mine.rules"]) == Options.of(rules=Path("mine.rules"))


def test_options_pickle_with_what_was_given() -> None:
    options = Options.of(db="run.duckdb", dims={"batch": 2}, time_limit_s=60.0)
    again = pickle.loads(pickle.dumps(options))
    assert again == options
    assert again.given == options.given


def test_an_option_has_one_name_in_all_groups() -> None:
    names = [option.name for _, option in options_in(Options)]
    assert len(set(names)) == len(names)


@dataclass(frozen=True, slots=True)
class Kitchen(OptionGroup):
    """A group's options, with one line for each."""

    dough: str = option("yeast", "what rises", choices=("yeast", "soda"))
    oven_s: float = option(60.0, "seconds in the oven", metavar="S")
    salted: bool = option(True, "leave the salt out")
    seeds: tuple[str, ...] = option((), "what is strewn on top")


@dataclass(frozen=True, slots=True)
class Bakery(OptionTree):
    """A tree with one group."""

    kitchen: Kitchen = field(default_factory=Kitchen)


def parsed(*argv: str) -> Bakery:
    parser = Parser(prog="bake")
    add_tree(parser, Bakery)
    args = parser.parse_args(argv)
    return Bakery.of(**written_values(args, options_of(Kitchen)))


def test_a_new_option_is_one_line_in_one_place(capsys: pytest.CaptureFixture[str]) -> None:
    """Flag, help, default, converter, check, nearest name, JSON and schema follow from the field."""
    assert parsed() == Bakery()
    argv = ["--dough", "soda", "--oven", "5", "--no-salted", "--seeds", "poppy", "--seeds", "dill"]
    options = parsed(*argv)
    assert options.kitchen == Kitchen("soda", 5.0, False, ("poppy", "dill"))
    with pytest.raises(UsageError, match="unknown dough 'sodda', expected one of yeast, soda; did"):
        parsed("--dough", "sodda")
    with pytest.raises(UsageError, match="'x' is not a number of seconds"):
        parsed("--oven", "x")
    with pytest.raises(UsageError, match="'--ovn'; did you mean '--oven'"):
        parsed("--ovn", "3")
    with pytest.raises(UsageError, match="oven_s = -1, expected a number of seconds"):
        Bakery.of(oven_s=-1)
    assert capsys.readouterr().err == ""
    with pytest.raises(SystemExit):
        parsed("--help")
    shown = " ".join(capsys.readouterr().out.split())
    assert "--dough NAME what rises: yeast, soda [yeast]" in shown
    assert "--oven S seconds in the oven [60]" in shown
    schema = options_schema(Bakery)
    assert schema["properties"]["kitchen"]["properties"]["dough"]["enum"] == ["yeast", "soda"]
    assert from_json(Bakery, to_json(options)) == options


@pytest.mark.parametrize(
    "options",
    [
        Options(),
        Options.of(db=Path("x"), dims={"n": 3}, inputs={"x": Path("y")}, skip=("r",)),
        Options.of(time_limit_s=None, extract_every=2, only=("a", "b")),
    ],
)
def test_what_is_stored_fits_the_schema(options: Options) -> None:
    jsonschema.validate(to_json(options), options_schema(Options))
    wrong = to_json(options)
    wrong["extraction"]["extractor"] = "ilb"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, options_schema(Options))


def test_outputs_that_cannot_be(tmp_path: Path) -> None:
    model = tmp_path / "m.json"
    model.write_text("{}")
    with pytest.raises(UsageError, match=r"suffix must be \.json or \.onnx; did you mean '\.json'"):
        check_output(tmp_path / "m.jsn", model)
    with pytest.raises(UsageError, match="does not exist"):
        check_output(tmp_path / "absent" / "m.json", model)
    with pytest.raises(UsageError, match="would overwrite the model"):
        check_output(tmp_path / "." / "m.json", model)
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        check_output(tmp_path / "folder.json", model)
    assert check_output(None, model) is None


def test_the_default_output_is_in_the_current_folder_and_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = tmp_path / "models" / "m.onnx"
    output = Path("m.opt.onnx")
    default = default_output(model)
    assert check_output(default, model) == output
    assert isinstance(default, DefaultOutput)
    assert default.free() == output
    output.symlink_to("absent.onnx")  # a link to a file that is not there would be replaced, too
    with pytest.raises(UsageError, match="exists already; -o names another file"):
        default_output(model)
    assert default_output(model, force=True) == output
    Path("m.opt.1.onnx").touch()
    assert default.free() == Path("m.opt.2.onnx")


def test_only_databases_are_replaced(tmp_path: Path) -> None:
    import duckdb

    check_database(tmp_path / "new.duckdb")
    duckdb.connect(str(tmp_path / "old.duckdb")).close()
    check_database(tmp_path / "old.duckdb", force=True)
    with pytest.raises(UsageError, match="--force replaces it"):
        check_database(tmp_path / "old.duckdb")
    precious = tmp_path / "model.json"
    precious.write_text("{}")
    with pytest.raises(UsageError, match="is not a database, it is not overwritten"):
        check_database(precious)
    with pytest.raises(UsageError, match="does not exist"):
        check_database(tmp_path / "absent" / "x.duckdb")
    with pytest.raises(UsageError, match="is a folder"):
        check_database(tmp_path)


def test_with_measured_costs_searches_are_shorter_unless_it_is_said_how_long(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plug_in(monkeypatch, FakeDevice(time_us=lambda configuration: 2.0))
    for given, expected in (
        ({}, (7.0, 2.0)),
        ({"time_limit_s": 99.0}, (99.0, 2.0)),
        (DEFAULTS, tuple(DEFAULTS.values())),  # given, though they are what others take
        ({"time_limit_s": None, "extract_time_limit_s": 1.0}, (None, 1.0)),
    ):
        for cost, limits in (("cpu", expected), ("t4", tuple({**DEFAULTS, **given}.values()))):
            options = Options.of(cost=cost, cost_cache=tmp_path / "costs.duckdb", **given)
            own = Run.begin(options, shared_matmuls(), None, None, Silent(), optimize).options
            assert (own.exploration.time_limit_s, own.extraction.time_limit_s) == limits
    measured = with_short_limits(Options())
    assert with_short_limits(measured) == measured
    stored = from_json(
        Options, to_json(Options.of(**DEFAULTS))
    )  # a run that is resumed has its own
    assert with_short_limits(stored) == stored == Options()
