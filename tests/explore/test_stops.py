"""Limits hold, Ctrl-C is heeded, and what is there then is whole: sound, logged, extractable."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from relational_tensat.base.process import ProcessOptions
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.database import OutOfMemory
from relational_tensat.explore import (
    Exploration,
    ExplorationOptions,
    IterationReport,
    Observer,
    explore,
)
from relational_tensat.rules.language import parse_rules
from relational_tensat.tensor import Node, build_graph
from relational_tensat.verify.evaluate import SeededWeights, evaluate_graph, random_inputs
from tests.egraph.extraction import cheapest_graph, original_graph
from tests.egraph.invariants import assert_invariants
from tests.explore.canonical import same
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed, separate_sums, sum_of

NEVER = ExplorationOptions(iterations=1000, node_limit=10**9, time_limit_s=None)
REORDER = example_rules("swap", "regroup")

in_main_thread = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals need the main thread"
)


def assert_whole(egraph: EGraph, exploration: Exploration, cycle_filter: str = "efficient") -> None:
    """Fail unless the tables are sound, agree with what was reported, and give the original graph."""
    assert_invariants(egraph, cycle_filter)
    logged = dict(
        egraph.connection.execute(
            "SELECT iteration, sum(matches) FROM match_log GROUP BY 1"
        ).fetchall()
    )
    assert logged == {entry.iteration: entry.matches for entry in exploration.log if entry.matches}
    ((unions,),) = egraph.connection.execute("SELECT count(*) FROM union_log").fetchall()
    assert unions == sum(entry.unions for entry in exploration.log)
    ((last,),) = egraph.connection.execute("SELECT max(iteration) FROM enode").fetchall()
    assert last <= exploration.iterations <= len(exploration.log)
    inputs, weights = random_inputs(egraph.graph, 3), SeededWeights(egraph.graph, 3)
    expected = evaluate_graph(egraph.graph, inputs, weights)
    for graph in (original_graph(egraph), cheapest_graph(egraph)):
        for name, value in evaluate_graph(graph, inputs, weights).items():
            assert value == pytest.approx(expected[name], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("limit", "cycle_filter"),
    [(limit, "efficient") for limit in (1, 19, 20, 21, 60, 300)]
    + [(60, "vanilla"), (1, "none"), (60, "none"), (300, "none")],
)
def test_a_cartesian_rule_does_not_exceed_the_node_limit(limit: int, cycle_filter: str) -> None:
    graph = separate_sums(6)  # 12 inputs, 6 sums, 2 tuples; 15 pairs of sums give 6 e-nodes each
    egraph = EGraph.create(graph)
    limits = ExplorationOptions(2, node_limit=limit, cycle_filter=cycle_filter)
    exploration = explore(egraph, example_rules("join-sums"), limits)
    assert egraph.counts()[0] <= max(limit, 20)
    if limit < 20 + 15 * 6:
        assert exploration.stop_reason == "nodes"
    assert_whole(egraph, exploration, cycle_filter)


@pytest.mark.parametrize("limit", [30, 100, 101, 1000])
def test_the_node_limit_holds_in_every_iteration(limit: int) -> None:
    egraph = EGraph.create(sum_of(9))
    sizes = []

    def progress(entry: IterationReport) -> None:
        sizes.append(egraph.counts()[0])

    exploration = explore(
        egraph, REORDER, ExplorationOptions(node_limit=limit), observer=Observer(progress=progress)
    )
    assert exploration.stop_reason == "nodes"
    assert max(sizes) <= limit
    assert max(sizes) > 0.6 * limit  # what fits is built; congruence may take a part of it again
    assert_whole(egraph, exploration)


def test_a_limit_that_is_just_enough_is_not_reached() -> None:
    free = EGraph.create(sum_of(5))
    explore(free, REORDER)
    most = 400  # on the way there are more e-nodes than in the end
    egraph = EGraph.create(sum_of(5))
    exploration = explore(egraph, REORDER, ExplorationOptions(node_limit=most))
    assert exploration.stop_reason == "saturated"
    assert same(egraph, free)


SHUFFLE = parse_rules(
    """
    (rule shuffle (law "a + b and c + d, each commuted")
      (from (add ?a ?b) (add ?c ?d)) (to (add ?b ?a) (add ?d ?c)))
    (rule shuffle-products (law "a * b and a * c, each commuted")
      (from (mul ?a ?b) (mul ?a ?c)) (to (mul ?b ?a) (mul ?c ?a)))
    """,
    "shuffle.rules",
)


def test_a_limit_that_makes_batches_but_is_not_reached_changes_nothing() -> None:
    """Most applications ask for the same e-nodes, and most are rejected: they would be cyclic."""
    chain = sum_of(17)
    nodes = [*chain.nodes, Node("mul", ("x0", "x1"), ("p",)), Node("mul", ("x0", "x2"), ("q",))]
    nodes += [Node("add", (f"x{i}", f"x{i + 4}"), (f"t{i}",)) for i in range(4)]
    outputs = [*chain.outputs, "p", "q", "t0", "t1", "t2", "t3"]
    graph = build_graph("shuffled", chain.inputs, {}, nodes, outputs)
    large, small = EGraph.create(graph), EGraph.create(graph)
    explore(large, SHUFFLE, ExplorationOptions(1, node_limit=10**6))
    exploration = explore(small, SHUFFLE, ExplorationOptions(1, node_limit=100))
    assert (
        exploration.log[0].matches > 300
    )  # of at most two e-nodes each: too many to build at once
    assert small.counts()[0] < 100
    assert same(large, small)


def test_the_time_limit() -> None:
    egraph = EGraph.create(sum_of(14))
    started = time.monotonic()

    def progress(entry: IterationReport) -> None:
        if entry.iteration == 2:  # without this, what is explored by then takes minutes to check
            time.sleep(max(0.0, started + 0.98 - time.monotonic()))

    exploration = explore(
        egraph,
        REORDER,
        ExplorationOptions(1000, node_limit=10**9, time_limit_s=1.0),
        observer=Observer(progress=progress),
    )
    assert 1.0 <= time.monotonic() - started < 20
    assert exploration.stop_reason == "time"
    assert 0 < exploration.iterations < 1000
    assert_whole(egraph, exploration)


def test_no_time_at_all() -> None:
    egraph = EGraph.create(sum_of(14))
    exploration = explore(
        egraph, REORDER, ExplorationOptions(1000, node_limit=10**9, time_limit_s=0.0)
    )
    assert (exploration.stop_reason, exploration.iterations) == ("time", 0)
    assert egraph.counts() == (27, 27)
    assert_whole(egraph, exploration)


def test_time_enough() -> None:
    before = threading.active_count()
    exploration = explore(
        EGraph.create(sum_of(3)), REORDER, ExplorationOptions(time_limit_s=1000.0)
    )
    assert exploration.stop_reason == "saturated"
    assert threading.active_count() == before


def test_the_memory_limit() -> None:
    egraph = EGraph.create(sum_of(12), process=ProcessOptions(memory_limit="10MB"))
    exploration = explore(egraph, REORDER, NEVER)
    assert exploration.stop_reason == "memory"
    egraph.connection.execute("SET memory_limit = '1GB'")  # the invariants need more than was left
    assert_whole(egraph, exploration)


@in_main_thread
def test_ctrl_c_between_iterations() -> None:
    def progress(entry: IterationReport) -> None:
        if entry.iteration == 2:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    egraph = EGraph.create(sum_of(9))
    exploration = explore(egraph, REORDER, NEVER, observer=Observer(progress=progress))
    assert (exploration.stop_reason, exploration.iterations) == ("interrupted", 2)
    assert signal.getsignal(signal.SIGINT) is before
    assert_whole(egraph, exploration)


@in_main_thread
def test_ctrl_c_twice_ends_the_program() -> None:
    def progress(entry: IterationReport) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        explore(EGraph.create(sum_of(9)), REORDER, NEVER, observer=Observer(progress=progress))
    assert signal.getsignal(signal.SIGINT) is before


@in_main_thread
def test_ctrl_c_within_an_iteration() -> None:
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))

    def progress(entry: IterationReport) -> None:
        if entry.iteration == 1:
            timer.start()  # the iterations after it take much longer than that

    egraph = EGraph.create(sum_of(14))
    exploration = explore(egraph, REORDER, NEVER, observer=Observer(progress=progress))
    assert exploration.stop_reason == "interrupted"
    assert_whole(egraph, exploration)


def test_an_exploration_in_another_thread_leaves_signals_alone() -> None:
    explorations: list[Exploration] = []
    egraph = EGraph.create(sum_of(4))
    thread = threading.Thread(target=lambda: explorations.append(explore(egraph, REORDER)))
    thread.start()
    thread.join()
    assert explorations[0].stop_reason == "saturated"


def stop_at(egraph: EGraph, statement: int, stop: Callable[[], Any]) -> None:
    """Let ``stop`` happen before that statement of the e-graph, or the next one that is no appending."""
    execute, is_done = egraph.database.execute, False

    def counting(*args: Any, **kwargs: Any) -> Any:
        nonlocal is_done
        if egraph.database.statements >= statement and not is_done:
            is_done = True
            stop()
        return execute(*args, **kwargs)

    egraph.database.execute = counting  # type: ignore[method-assign]


def no_memory() -> None:
    raise OutOfMemory("as if")


@pytest.mark.parametrize("reason", ["interrupted", "memory"])
def test_whichever_statement_is_stopped(reason: str) -> None:
    """The e-graph is left as the last complete iteration left it, and can be explored further."""
    limits = ExplorationOptions(3, 2, multi_schedule="first", node_limit=600)
    reference, statement_counts = EGraph.create(mixed()), []
    whole = explore(
        reference,
        example_rules(),
        limits,
        observer=Observer(
            progress=lambda _: statement_counts.append(reference.database.statements)
        ),
    )
    begin = statement_counts[0] - whole.log[0].statements
    for statement in range(begin, statement_counts[-1], 37):
        egraph = EGraph.create(mixed())
        stop = egraph.database.interrupt if reason == "interrupted" else no_memory
        stop_at(egraph, statement, stop)
        exploration = explore(egraph, example_rules(), limits)
        assert exploration.stop_reason == reason
        assert_whole(egraph, exploration)
        egraph.close()


def test_exploration_resumed_after_an_interrupt_ends_the_same() -> None:
    whole = EGraph.create(mixed())
    rules = example_rules("swap", "negate", "distribute", "factor", "twice", "same")
    limits = ExplorationOptions(30, node_limit=5000)
    assert explore(whole, rules, limits).stop_reason == "saturated"
    egraph = EGraph.create(mixed())
    stop_at(egraph, egraph.database.statements + 25, egraph.database.interrupt)
    assert explore(egraph, rules, limits).stop_reason == "interrupted"
    assert explore(egraph, rules, limits).stop_reason == "saturated"
    assert_invariants(egraph)
    assert same(egraph, whole)
