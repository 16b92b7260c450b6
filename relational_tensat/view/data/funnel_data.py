"""A synthesis of rules, as a page shows it: how many there are of what, and what became of each law."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FunnelCount:
    """How many there are of something, from windows of models to rules."""

    what: str
    number: int


@dataclass(frozen=True, slots=True)
class FunnelStage:
    """A stage that has ended: how many rows it left over, and its CPU seconds."""

    name: str
    rows: int
    cpu_s: float


@dataclass(frozen=True, slots=True)
class FunnelLaw:
    """A law that was a candidate.

    Attributes:
        status: how it left the funnel, or waiting.
        gain: the largest share of a model's cost that it may save, modelled.
        models: where it may save something.
        note: why it was refuted.
    """

    law: str
    status: str
    gain: float
    models: tuple[str, ...]
    note: str


@dataclass(frozen=True, slots=True)
class FunnelPage:
    """A page of a synthesis alone.

    Attributes:
        laws: those that promise most first.
        left_out: how many laws more there are.
        rules: what was found, in the rule language.
    """

    title: str
    funnel: tuple[FunnelCount, ...]
    stages: tuple[FunnelStage, ...]
    laws: tuple[FunnelLaw, ...]
    left_out: int
    rules: tuple[str, ...]
