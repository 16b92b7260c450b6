"""Races correct costs within a run; graphs that were timed race no more. The clock is made up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import copyfile
from types import SimpleNamespace

import duckdb
import pytest

from relational_tensat import Options, optimize
from relational_tensat.cli.main import main
from relational_tensat.cli.run_text import summary_line
from relational_tensat.cost import Configuration
from relational_tensat.cost import race as cost_race
from relational_tensat.formats import save_model
from relational_tensat.run import end_to_end
from relational_tensat.run.result import Result
from relational_tensat.run.stages import race_rounds
from relational_tensat.tensor import Array, Graph, Node, build_graph
from relational_tensat.view.collection import collect
from tests.cost.fakes import FakeDevice, plug_in
from tests.graphs import f32, weight
from tests.tiers import nightly

RULES = """
(rule difference-as-sum (law "x - b = x + (-b)") (from (sub ?x ?b)) (to (add ?x (neg ?b))))
(rule quotient-as-product (law "x ÷ b = x × (1 ÷ b)") (from (div ?x ?b)) (to (mul ?x (reciprocal ?b))))
"""
#: What single kernels take alone. The cheapest graph has neither a difference nor a quotient.
ALONE_US = {
    "matmul": 20.0,
    "sub": 20.0,
    "add": 6.0,
    "neg": 6.0,
    "div": 4.0,
    "mul": 1.0,
    "reciprocal": 1.0,
}
#: What they take in a graph: there the fastest has the difference and the product.
IN_GRAPH_US = {**ALONE_US, "neg": 30.0}


class Clock:
    """Seconds that pass when a device runs graphs."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def perf_counter(self) -> float:
        return self.now_s


class TimedDevice(FakeDevice):
    """Runs graphs as its clock says; counts the heats."""

    clock = Clock()
    heat_s = 0.1
    heats = 0
    raced: frozenset[tuple[str, ...]] = frozenset()
    noise = 0.0

    def heat(self, graphs: Sequence[Graph], inputs: Mapping[str, Array], seed: int) -> list[float]:
        self.heats += 1
        self.clock.now_s += self.heat_s
        self.raced |= {ops(graph) for graph in graphs}
        times_us = [sum(IN_GRAPH_US[op] for op in ops(graph)) for graph in graphs]
        swing = self.noise * (-1) ** self.heats
        return [1.0, *(times_us[0] / us * (1 + swing) for us in times_us[1:])]


def ops(graph: Graph) -> tuple[str, ...]:
    return tuple(sorted(node.op for node in graph.nodes))


def model() -> Graph:
    """Return (x·w - z) ÷ t."""
    kind = f32(64, 64)
    return build_graph(
        "differences",
        {"x": kind, "z": kind, "t": kind},
        {"w": weight(64, 64)},
        [
            Node("matmul", ("x", "w"), ("a",)),
            Node("sub", ("a", "z"), ("b",)),
            Node("div", ("b", "t"), ("y",)),
        ],
        ["y"],
    )


CHEAPEST = ("add", "matmul", "mul", "neg", "reciprocal")
FASTEST = ("matmul", "mul", "reciprocal", "sub")


def plugged_in(monkeypatch: pytest.MonkeyPatch) -> TimedDevice:
    """Return the device that runs measure on from now on."""

    def alone_us(configuration: Configuration) -> float:
        return ALONE_US[configuration.op]

    made = TimedDevice(time_us=alone_us)
    made.clock = Clock()
    for module in (cost_race, end_to_end):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=made.clock.perf_counter))
    monkeypatch.setattr(race_rounds, "_MOST_GRAPHS", 1)
    plug_in(monkeypatch, made)
    return made


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> TimedDevice:
    return plugged_in(monkeypatch)


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TimedDevice, Result]:
    """Return the cache that a run with its races has left, its device, and its result."""
    folder = tmp_path_factory.mktemp("first")
    with pytest.MonkeyPatch.context() as patch:
        device = plugged_in(patch)
        return folder / "costs.duckdb", device, run(folder)


@pytest.fixture
def raced(
    device: TimedDevice, first_run: tuple[Path, TimedDevice, Result], tmp_path: Path
) -> Result:
    """Return the result of a run whose costs and races the test's own cache has."""
    cache, before, result = first_run
    copyfile(cache, tmp_path / "costs.duckdb")
    device.heats, device.requests = before.heats, list(before.requests)
    return result


def run(
    tmp_path: Path, graph: Graph | None = None, rules: str = RULES, **options: object
) -> Result:
    own = (
        tmp_path.parent / "own.rules"
    )  # one path for all: a run that repeats another has its rules
    own.write_text(rules)
    chosen = Options.of(
        cost="cpu",
        cost_cache=tmp_path / "costs.duckdb",
        rules=(own,),
        allow_unsound=True,
        verify_runs=1,
        **options,
    )
    return optimize(graph or model(), chosen)


def test_the_first_choice_loses_and_the_second_round_finds_the_fastest(
    first_run: tuple[Path, TimedDevice, Result],
) -> None:
    _, device, result = first_run
    race = result.race
    assert race is not None
    assert device.raced == {ops(model()), CHEAPEST, FASTEST}
    assert ops(result.graph) == FASTEST
    assert race.rounds == 2 and race.timed_before == ""
    assert [(each.round, round(each.standing.speedup, 3)) for each in race.contenders] == [
        (2, round(44 / 42, 3)),
        (1, round(44 / 58, 3)),
    ]
    assert result.optimal  # by the corrected costs, it is the cheapest
    assert result.cost_after_us == race.contenders[race.winner].cost_us < race.original_us
    assert any("corrected by what races say (2 in" in note for note in result.notes)


def test_the_budget_ends_the_rounds(device: TimedDevice, tmp_path: Path) -> None:
    device.heat_s = 10.0
    result = run(tmp_path, budget_s=30.0)
    assert result.race is not None and result.race.rounds == 1
    assert result.unchanged and device.raced == {ops(model()), CHEAPEST}


def test_what_was_timed_does_not_race_again(
    device: TimedDevice, tmp_path: Path, raced: Result
) -> None:
    first = raced
    heats, requests = device.heats, len(device.requests)
    again = run(tmp_path)
    assert (device.heats, len(device.requests)) == (heats, requests)  # nothing is timed
    assert ops(again.graph) == ops(first.graph) == FASTEST
    assert again.race is not None and first.race is not None
    assert again.race.rounds == 0 and again.race.final == first.race.final
    assert again.race.timed_before in again.race.outcome or "timed on 20" in again.race.outcome
    assert "the choice of a run before, timed on" in again.race.outcome
    assert "--set race-again=yes times them again" in again.race.outcome
    assert (again.cost_before_us, again.cost_after_us) == (
        first.cost_before_us,
        first.cost_after_us,
    )
    assert again.optimal
    again = run(tmp_path, race_again=True)
    assert device.heats > heats and again.race is not None and again.race.timed_before == ""


def test_a_run_that_is_repeated_has_what_time_is_left(device: TimedDevice, tmp_path: Path) -> None:
    """The first has no time for the graph that its race brought; the second times it, having no other."""
    device.heat_s = 10.0
    first = run(tmp_path)
    assert first.race is not None and first.race.rounds == 1 and first.unchanged
    second = run(tmp_path)
    assert second.race is not None and second.race.rounds == 1
    assert ops(second.graph) == FASTEST
    heats = device.heats
    third = run(tmp_path)
    assert third.race is not None and third.race.rounds == 0
    assert ops(third.graph) == FASTEST and device.heats == heats


def test_a_settled_choice_is_found_again_where_extraction_finds_another(
    device: TimedDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raced: Result
) -> None:
    """Extraction that time ends may find another graph each time: none of them races in a repeated run."""
    first = raced
    heats = device.heats

    def never(*_: object) -> None:
        raise AssertionError("no candidates are looked for")

    monkeypatch.setattr(race_rounds, "candidates", never)
    again = run(tmp_path)
    assert again.race is not None and again.race.is_remembered
    assert ops(again.graph) == ops(first.graph) and device.heats == heats
    assert first.race is not None and not first.race.is_remembered
    with pytest.raises(AssertionError, match="no candidates"):
        run(tmp_path, race_again=True)


@pytest.mark.parametrize(
    "other",
    [
        {"measure_time_limit_s": 50.0},
        nightly({"learn_costs": False}),
        nightly({"iterations": 1}),
        nightly({"seed": 1}),
    ],
)
@pytest.mark.usefixtures("raced")
def test_another_run_looks_for_its_own_choice(tmp_path: Path, other: dict[str, object]) -> None:
    result = run(tmp_path, **other)
    assert result.race is not None and not result.race.is_remembered


def test_what_was_interrupted_is_not_remembered(
    device: TimedDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heat = device.heat

    def interrupted(graphs: Sequence[Graph], inputs: Mapping[str, Array], seed: int) -> list[float]:
        if FASTEST in map(ops, graphs):
            raise KeyboardInterrupt
        return heat(graphs, inputs, seed)

    monkeypatch.setattr(device, "heat", interrupted)
    first = run(tmp_path)
    assert any("racing was interrupted" in note for note in first.notes)
    monkeypatch.setattr(device, "heat", heat)
    again = run(tmp_path)
    assert again.race is not None and not again.race.is_remembered
    assert ops(again.graph) == FASTEST


def test_where_nothing_races_nothing_is_remembered(tmp_path: Path, raced: Result) -> None:
    assert ops(raced.graph) == FASTEST
    result = run(tmp_path, budget_s=0.0, learn_costs=False)
    assert result.race is None and ops(result.graph) == CHEAPEST


@pytest.mark.usefixtures("raced")
def test_where_costs_are_others_the_choice_is_looked_for_again(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "costs.duckdb") as connection:
        where = "configuration LIKE '%reciprocal%'"
        connection.execute(f"UPDATE measured_cost SET p10_us = 10 * p10_us WHERE {where}")
    result = run(tmp_path)
    assert result.race is None and result.unchanged  # by these costs, no graph is cheaper


def test_without_corrections_there_is_one_round_and_that_the_original_was_kept_is_remembered(
    device: TimedDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(tmp_path, learn_costs=False)
    assert first.race is not None and first.race.rounds == 1
    assert device.raced == {ops(model()), CHEAPEST}
    heats = device.heats
    monkeypatch.setattr(race_rounds, "candidates", None)
    again = run(tmp_path, learn_costs=False)
    assert first.unchanged and again.unchanged and device.heats == heats
    assert again.race is not None and again.race.is_remembered
    assert any("the choice of a run before" in note for note in again.notes)


def test_what_is_estimated_is_one_figure_and_optimal_says_so(
    device: TimedDevice, tmp_path: Path
) -> None:
    measured = run(tmp_path, budget_s=0.0)
    assert (measured.costs.estimated, measured.cost_basis) == (0, "measured")
    assert "estimated" not in summary_line(measured)
    (tmp_path / "costs.duckdb").unlink()
    db = tmp_path / "run.duckdb"
    limits = {"budget_s": 0.0, "measure_time_limit_s": 1e-9}  # one is measured, then it ends
    result = run(tmp_path, db=db, **limits)
    estimated, total = result.costs.estimated, result.costs.total
    assert 0 < estimated < total and result.cost_basis == "partly estimated"
    assert any(f": {estimated} configurations are estimated by" in note for note in result.notes)
    assert result.optimal
    estimates = f"{estimated} of {total} are estimated"
    assert f", under costs of which {estimates}" in summary_line(result)
    with duckdb.connect(db, read_only=True) as connection:
        assert collect(connection).summary.estimated_costs == estimates


#: By the profile it is cheaper: a kernel less.
DIFFERENCE = """
(rule sum-as-difference (law "x + (-b) = x - b") (from (add ?x (neg ?b))) (to (sub ?x ?b)))
"""


def summed() -> Graph:
    """Return x·w + (-z)."""
    kind = f32(64, 64)
    nodes = [
        Node("matmul", ("x", "w"), ("a",)),
        Node("neg", ("z",), ("b",)),
        Node("add", ("a", "b"), ("y",)),
    ]
    return build_graph("sum", {"x": kind, "z": kind}, {"w": weight(64, 64)}, nodes, ["y"])


@pytest.mark.parametrize(
    ("in_graph_us", "is_faster"), [(3.0, True), (11.9, False), nightly(20.0, False)]
)
def test_the_profiles_choice_races_where_sums_prefer_the_original(
    device: TimedDevice,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    in_graph_us: float,
    is_faster: bool,
) -> None:
    """Alone a difference takes 20 µs, a sum and a negation 12: in a graph that may be otherwise."""
    monkeypatch.setitem(IN_GRAPH_US, "sub", in_graph_us)
    monkeypatch.setitem(IN_GRAPH_US, "neg", 6.0)
    monkeypatch.setattr(device, "noise", 0.004)
    result = run(tmp_path, summed(), DIFFERENCE)
    race = result.race
    assert race is not None and device.raced == {ops(summed()), ("matmul", "sub")}
    assert race.contenders[race.winner].name == "the cheapest by the profile"
    assert result.unchanged != is_faster
    if is_faster:
        assert ops(result.graph) == ("matmul", "sub") and race.final.is_faster
        assert not any("the original is kept" in note for note in result.notes)
    heats = device.heats
    assert run(tmp_path, summed(), DIFFERENCE).unchanged != is_faster
    assert device.heats == heats


def test_a_few_measured_kernels_do_not_keep_the_original(
    device: TimedDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what is measured the original has the quick kernels; the profile's choice races all the same."""
    monkeypatch.setitem(IN_GRAPH_US, "sub", 3.0)
    result = run(tmp_path, summed(), DIFFERENCE, measure_time_limit_s=1e-9)
    assert result.costs.estimated > 0
    assert ops(result.graph) == ("matmul", "sub")


@pytest.mark.usefixtures("raced")
def test_another_version_of_the_runtime_races_again(device: TimedDevice, tmp_path: Path) -> None:
    heats = device.heats
    device.key = device.key.__class__(
        device.key.kind,
        device.key.name,
        device.key.driver,
        {"onnxruntime": "2"},
        device.key.protocol,
    )
    run(tmp_path)
    assert device.heats > heats  # another version of the runtime


def test_the_report_has_the_rounds(
    device: TimedDevice, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_model(model(), tmp_path / "model.json")
    (tmp_path / "own.rules").write_text(RULES)
    arguments = [
        "run",
        str(tmp_path / "model.json"),
        "-o",
        str(tmp_path / "out.json"),
        "--cost",
        "cpu",
    ]
    arguments += [
        "--cost-cache",
        str(tmp_path / "costs.duckdb"),
        "--rules",
        str(tmp_path / "own.rules"),
    ]
    assert main([*arguments, "--allow-unsound", "-v"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "races: 2; after each, costs were corrected by what it said" in text
    assert (
        main([*arguments, "--allow-unsound", "--json", "--json-events", "--set", "race-again=yes"])
        == 0
    )
    captured = capsys.readouterr()
    assert json.loads(captured.out)["race"]["rounds"] >= 1
    events = [json.loads(line) for line in captured.err.splitlines()]
    raced = [event for event in events if event["event"] == "raced"]
    assert [event["round"] for event in raced] == list(range(1, len(raced) + 1))
    assert all(event["graphs"] for event in raced)
