"""The funnel: from models and operators to rules, stage by stage, all of it in one file.

Every stage reads what the one before has written, so a synthesis goes on where it was ended.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from bench.synthesis.candidates import add_laws, laws_of_one
from bench.synthesis.enumeration import TermBank
from bench.synthesis.judging import DERIVED, TRIALS, judged_pair
from bench.synthesis.pair_terms import read_rule_text, rule_of, with_names
from bench.synthesis.store import SynthesisStore
from bench.synthesis.tools import SynthesisTools
from bench.synthesis.two_sources import laws_of_two, rule_of_two
from bench.synthesis.vocabulary import TermSetting, settings_of_operators
from bench.synthesis.windows import (
    MinedWindow,
    form_of,
    setting_key,
    setting_of_windows,
    windows_of,
)
from relational_tensat.base.records import record
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.model import Rule, Term, rule_text, variables_of
from relational_tensat.tensor.graph import Graph
from relational_tensat.tensor.types import TensorType

#: Pairs that are derived in one e-graph.
_PAIRS = 300
#: Windows of models have so many operators more than terms: what is cheaper is shorter.
_WIDER = 4
#: Windows of a model.
_MOST_WINDOWS = 20_000
#: The share of the time that terms may take.
_OF_TERMS = 0.4

#: Windows with their numbers.
_Windows: TypeAlias = Sequence[tuple[int, MinedWindow]]


@record
class SynthesisRequest:
    """What is sought.

    Attributes:
        models: whose windows are to become cheaper.
        operators: of which laws are sought, whether or not a model needs them.
        size: operators of a term.
        sources: 2 for rules of two sources, too, whose targets are the parts of one tensor.
        cheaper: only rules whose target costs less, modelled; else no more, or, of two sources, any.
        time_limit_s: CPU seconds, of this process.
        trials: configurations that what is to be written is tried on.
    """

    models: tuple[Path, ...] = ()
    operators: tuple[str, ...] = ()
    size: int = 2
    sources: int = 1
    cheaper: bool = True
    time_limit_s: float = 120.0
    seed: int = 0
    trials: int = TRIALS


@dataclass
class RuleFunnel:
    """A synthesis in a file.

    Attributes:
        report: is told which stages end early.
    """

    store: SynthesisStore
    request: SynthesisRequest
    tools: SynthesisTools
    report: Callable[[str], None]
    _over: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._deadline_s = time.process_time() + self.request.time_limit_s

    def run(self) -> list[Rule]:
        """Carry out the stages that have not ended; return the rules, those that save most first."""
        for name, stage in (
            ("terms", self._terms), ("candidates", self._candidates), ("derived", self._derive),
            ("judged", self._judge),
        ):  # fmt: skip
            if not self.store.rows("ended", stage=name):
                with self.store.stage(name) as left:
                    count = stage()
                    if not self._over:  # else there is more to do when it goes on
                        left.append(count)
        return [read_rule_text(text) for _, text, *_ in self.store.rows("found")]

    def _is_over(self) -> bool:
        """Whether the time is: from then on, stages end early."""
        self._over = self._over or time.process_time() > self._deadline_s
        return self._over

    # --- terms ---

    def _terms(self) -> int:
        deadline_s = time.process_time() + _OF_TERMS * self.request.time_limit_s
        operators = self.request.operators
        own = [(setting, ()) for setting in settings_of_operators(operators)] if operators else []
        terms = 0
        for number, (setting, windows) in enumerate((*own, *self._mined(first=len(own)))):
            bank = self._grown(number, setting, deadline_s, windows)
            terms += bank.terms
            if bank.cut:
                self.report(f"terms: time is over in setting {number + 1}")
                break
        return terms

    def _grown(
        self, number: int, setting: TermSetting, deadline_s: float, windows: _Windows
    ) -> TermBank:
        self.store.add_setting(number, setting)
        bank = TermBank(setting, number, self.store, self.request.seed, deadline_s)
        bank.grow(self.request.size)
        leaves = len(setting.inputs)
        for name, window in windows:
            bank.add_window(name, [
                (op, attrs, _operands(operands, window.numbers, leaves, setting.numbers))
                for op, attrs, operands in window.applications
            ])  # fmt: skip
        bank.write()
        return bank

    def _mined(self, first: int) -> list[tuple[TermSetting, _Windows]]:
        """Return settings with their windows, each form once; write where models have them."""
        forms: dict[str, tuple[int, MinedWindow]] = {}
        uses: dict[int, list[tuple[str, float, float, str]]] = {}
        for path in self.request.models:
            graph = self.tools.optimized(path)
            whole_us = self.tools.whole_us(graph) or math.inf
            count = 0
            windows = windows_of(graph, self.request.size + _WIDER)
            for window in itertools.islice(windows, _MOST_WINDOWS):
                count += 1
                number, _ = forms.setdefault(form_of(window), (len(forms), window))
                window_us = self._window_us(graph, window)
                types = json.dumps([[kind.dtype, kind.shape] for kind in window.real])
                uses.setdefault(number, []).append((path.stem, window_us, whole_us, types))
            self.report(f"{path.name}: {len(graph.nodes)} operators after a run, {count} windows")
        groups: dict[str, list[tuple[int, MinedWindow]]] = {}
        for number, window in forms.values():
            groups.setdefault(setting_key(window), []).append((number, window))
        most = sorted(groups.values(), key=lambda group: -sum(
            cost / whole for number, _ in group for _, cost, whole, _ in uses[number]
        ))  # fmt: skip
        for setting, group in enumerate(most, start=first):
            for number, _ in group:
                for model, cost_us, whole_us, types in uses[number]:
                    self.store.rows(
                        "add_mined", model=model, cost_us=cost_us, whole_us=whole_us, setting=setting,
                        window=number, types=types,
                    )  # fmt: skip
        return [(setting_of_windows([window for _, window in group]), group) for group in most]

    def _window_us(self, graph: Graph, window: MinedWindow) -> float:
        kinds = graph.types
        return sum(
            self.tools.cost_us(
                node.op, tuple(kinds[name] for name in node.inputs), kinds[node.outputs[0]],
                tuple(node.attrs.items()),
            )
            for node in window.nodes
        )  # fmt: skip

    # --- pairs ---

    def _candidates(self) -> int:
        for (setting,) in self.store.rows("setting_ids"):
            of = self.store, setting, self.tools.cost_us
            cheaper, windows_only = self.request.cheaper, not self.request.operators
            laws = laws_of_one(*of, windows_only=windows_only, cheaper=cheaper)
            two = laws_of_two(*of, cheaper) if self.request.sources == 2 else ()
            add_laws(self.store, setting, itertools.chain(laws, two))
        return len(self.store.rows("laws"))

    def _derive(self) -> int:
        """Settle which pairs the laws prove, many in one e-graph, whatever their setting."""
        rows = self.store.rows("waiting", status="waiting")
        left = 0
        for start in range(0, len(rows), _PAIRS):
            if self._is_over():
                break
            batch = rows[start : start + _PAIRS]
            inputs: dict[str, TensorType] = {}
            pairs: list[tuple[Term, Term]] = []
            owners: list[int] = []
            for place, (number, setting, source, target) in enumerate(batch):
                own = self.store.inputs(setting)
                names = {name: f"{setting}.{name}" for name in own}
                inputs |= {names[name]: kind for name, kind in own.items()}
                rule = _as_written(number, source, target)
                for sides in zip(rule.sources, rule.targets, strict=True):
                    pairs.append((with_names(sides[0], names), with_names(sides[1], names)))
                    owners.append(place)
            unproved = {owners[pair] for pair in self.tools.unproved(pairs, inputs)}
            left += len(unproved)
            for place, (number, *_) in enumerate(batch):
                status = "not derived" if place in unproved else DERIVED
                self.store.rows("settle", id=number, status=status, note="")
        return left

    def _judge(self) -> int:
        """Settle which of the others hold, and are proved neither alone nor by rules found before them."""
        kept = [read_rule_text(text) for _, text, *_ in self.store.rows("found")]
        for number, setting, source, target in self.store.rows("waiting", status="not derived"):
            if self._is_over():
                break
            rule = _rule_of(number, source, target, self.store.inputs(setting))
            status, note = "refuted", "no dim is a part's size"
            if rule is not None:
                found = judged_pair(
                    self.store, rule, self.request.seed, self.request.trials,
                    lambda one: self.tools.derived(one, kept),
                )  # fmt: skip
                status, note = found.status, found.note
                if found.verdict is not None and status == "sound":
                    status = "found"
                    kept.append(found.rule)
                    text = rule_text(found.rule).partition("\n")[2]
                    evidence, trials = found.verdict.evidence, found.trials
                    self.store.rows(
                        "add_rule", id=number, text=text, evidence=evidence, trials=trials
                    )
            self.store.rows("settle", id=number, status=status, note=note)
        return len(kept)


def _rule_of(
    number: int, source: str, target: str, inputs: Mapping[str, TensorType]
) -> Rule | None:
    """Return the rule of a candidate; None where one of two sources cannot say where its parts begin."""
    written, name = _as_written(number, source, target), f"found-{number}"
    if written.is_multi:
        return rule_of_two(name, written, inputs)
    sides = written.sources[0], written.targets[0]
    return rule_of(name, *sides, _widest(inputs, sides[0]))


def _widest(inputs: Mapping[str, TensorType], source: Term) -> str:
    """Return the largest input of floats that a term has, or "" where it has none."""
    floats = [name for name in variables_of(source) if inputs[name].is_float]
    return max(floats, key=lambda name: inputs[name].size, default="")


def _as_written(number: int, source: str, target: str) -> Rule:
    (rule,) = parse_rules(f'(rule c{number} (law "c") (from {source}) (to {target}))', "candidate")
    return rule


def _operands(
    operands: tuple[int, ...], numbers: tuple[float, ...], leaves: int, known: tuple[float, ...]
) -> list[int]:
    """Return a window's operands as the setting has them: its numbers stand after its inputs."""
    return [
        operand if operand >= -leaves else -1 - leaves - known.index(numbers[-1 - leaves - operand])
        for operand in operands
    ]
