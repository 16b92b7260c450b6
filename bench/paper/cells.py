"""What is run: a cell per model and setting, and which of them each table needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: The seven models of the paper, in the order of its table 3; ResNet-50, which it could not speed up,
#: and MobileNet-v2, which it left out, can be asked for.
PAPER_MODELS = (
    "nasrnn", "bert", "resnext50", "nasnet_a", "squeezenet", "vgg19", "inception_v3",
)  # fmt: skip
#: Those that the paper's tables 4, 5 and 6 have.
ABLATION_MODELS = ("bert", "nasrnn", "nasnet_a")

#: Tables and figures by name, as the command knows them.
TABLES = ("1", "3", "4", "5", "6", "figure6", "figure7")

#: TASO's alpha; graphs that it rewrites (n). A run of fewer is the first part of one of more.
ALPHAS = (1.0, 1.05)
BUDGETS = (100, 1000)
K_VALUES = (0, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class Cell:
    """One run.

    Attributes:
        kind: ``saturate`` (explore and extract), ``anytime`` (extract while exploring), ``sequential``
            (the baseline), ``solve`` (the papers' integer programs) or ``explore`` (only that).
        k_multi: in how many iterations the multi-pattern rules take part; 0 for ``sequential``.
        variant: the rule set of ``saturate``, alpha of ``sequential``, the cycle filter of ``solve``
            and ``explore``; else empty.
    """

    kind: str
    model: str
    k_multi: int = 0
    variant: str = ""

    @property
    def name(self) -> str:
        """How files and messages call it."""
        parts = [self.kind, self.model]
        if self.kind != "sequential":
            parts.append(f"k{self.k_multi}")
        return "-".join(filter(None, [*parts, self.variant]))


def cells_of(tables: Iterable[str], models: Sequence[str]) -> list[Cell]:
    """Return the cells that tables need, each once, the longest last."""
    cells: dict[Cell, None] = {}
    for table in sorted(tables, key=_BY_LENGTH.index):
        cells.update(dict.fromkeys(_cells_of(table, models)))
    return list(cells)


#: The tables by how long their cells take.
_BY_LENGTH = ("4", "3", "1", "figure6", "6", "figure7", "5")


def saturate(model: str, k_multi: int, rules: str = "taso") -> Cell:
    """Return the cell of an ordinary run."""
    return Cell("saturate", model, k_multi, rules)


def sequential(model: str, alpha: float) -> Cell:
    """Return the cell of the baseline."""
    return Cell("sequential", model, variant=f"alpha{alpha:g}")


def paper_k(model: str) -> int:
    """Return the k_multi of the paper's tables 1 and 3."""
    return 2 if model == "inception_v3" else 1


def _cells_of(table: str, models: Sequence[str]) -> list[Cell]:
    some = [model for model in ABLATION_MODELS if model in models]
    match table:
        case "1":
            return [
                *(saturate(model, k) for model in models for k in sorted({1, paper_k(model)})),
                *(saturate(model, 1, "shipped") for model in models),
                *(sequential(model, alpha) for model in models for alpha in ALPHAS),
            ]
        case "3":
            return [saturate(model, k) for model in models for k in sorted({1, paper_k(model)})]
        case "4":
            return [saturate(model, 1) for model in models]
        case "5":
            filters = ("efficient", "none")
            return [
                Cell("solve", m, k, cycle_filter)
                for m in some
                for k in (1, 2)
                for cycle_filter in filters
            ]
        case "6":
            filters = ("efficient", "vanilla")
            return [
                Cell("explore", m, k, cycle_filter)
                for m in some
                for k in (1, 2)
                for cycle_filter in filters
            ]
        case "figure6":
            return [
                *(Cell("anytime", model, k) for model in models for k in (1, 2)),
                *(sequential(model, alpha) for model in models for alpha in ALPHAS),
            ]
        case _:
            return [saturate(model, k) for model in models for k in K_VALUES]
