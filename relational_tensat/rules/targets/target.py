"""What a target is: kernels, the rules that lead to them, and which operators are several kernels there.

The targets that there are, by name. A target is a module with a function ``describe() -> Target``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Protocol

from relational_tensat.base.errors import check_choice
from relational_tensat.base.files import resource_dir
from relational_tensat.cost import Configuration
from relational_tensat.cost.profile import Profile
from relational_tensat.rules.library import read_rule_file, shipped_files
from relational_tensat.rules.model import Rule
from relational_tensat.rules.targets.fused_kernel import FusedKernel
from relational_tensat.rules.targets.names import TARGETS
from relational_tensat.tensor import Graph
from relational_tensat.tensor.operators import operators, register

#: Rulesets of what is only done to files whose dimensions all are known, and to others.
FIXED_SHAPES, OPEN_SHAPES = "fixed-shapes", "open-shapes"
#: The ruleset of what it does not do by itself: other spellings, that it has faster kernels for.
OFFERED = "offered"
#: Shipped rules that never pay where a kernel adds to a convolution's result: bringing two images side by
#: side for one convolution costs more, and in a chain of residual sums all ways to do so are an image each.
SUMS_OF_CONVOLUTIONS = frozenset({"sum-of-convolutions", "sum-of-convolutions-with-bias"})


class KernelsOf(Protocol):
    """Says which kernels an application of an operator is."""

    def __call__(
        self, configuration: Configuration, *, tells_computed: bool
    ) -> list[Configuration]:
        """Return them, in order."""


class AsFused(Protocol):
    """Carries out what a target does in any case."""

    def __call__(self, graph: Graph, *, has_fixed_shapes: bool) -> Graph:
        """Return that graph."""


def _as_it_is(graph: Graph, *, has_fixed_shapes: bool) -> Graph:
    return graph


def _none(configuration: Configuration) -> list[Configuration]:
    return []


@dataclass(frozen=True, eq=False)
class Target:
    """A runtime on a kind of device.

    Attributes:
        name: what ``--target`` calls it; its rules are ``rules/targets/NAME.rules``.
        kernels: the operators that only it has. They are known from now on, to rules and graphs.
        kernels_of: which kernels an application of an operator is there; with ``tells_computed``, costs
            know which operands are computed, else they are as their work is priced.
        more_work_of: what these take beside what a profile says of them, as work of other kernels, of which
            none is launched.
        as_read: what it makes of a graph before it makes kernels, where how often a value is read decides
            about that: rules cannot.
        as_fused: what it makes of the kernels in the end, whatever that costs: extraction would not.
        left_out: shipped rules whose results never pay there, and only let the e-graph grow.
        as_priced: a profile as it holds in the setting that the target runs graphs in.
        takes_kernels: whether what runs graphs is given kernels; else it makes these of operators itself.
        measured_on: the kind of device that its kernels can be measured on; "" where that is not checked.
    """

    name: str
    kernels: Sequence[type[FusedKernel]]
    kernels_of: KernelsOf
    more_work_of: Callable[[Configuration], list[Configuration]] = _none
    as_read: Callable[[Graph], Graph] = lambda graph: graph
    as_fused: AsFused = _as_it_is
    left_out: frozenset[str] = frozenset()
    as_priced: Callable[[Profile], Profile] = lambda profile: profile
    takes_kernels: bool = False
    measured_on: str = ""

    def __post_init__(self) -> None:
        known = operators()
        for kernel in self.kernels:
            if kernel.name not in known:
                register(kernel)

    def rules(self, *, has_fixed_shapes: bool, offered: bool = False) -> list[Rule]:
        """Return what it makes of operators.

        Args:
            has_fixed_shapes: whether the file that it reads says how large all dimensions are.
            offered: instead, what it does not do by itself, but runs faster.
        """
        left_out = OPEN_SHAPES if has_fixed_shapes else FIXED_SHAPES
        rules = [rule for rule in read_rule_file(self.rule_file) if left_out not in rule.rulesets]
        return [rule for rule in rules if (OFFERED in rule.rulesets) == offered]

    @property
    def rule_file(self) -> Path:
        """Where its rules are."""
        return resource_dir("rules") / "targets" / f"{self.name}.rules"


#: The family of the rules that lead to kernels of a model's own.
FUSED = "fused"
#: What the file would be called that has them.
FUSED_FILE = f"{FUSED}.rules"


@cache
def load_target(name: str) -> Target:
    """Return a target; its kernels are operators from now on.

    Raises:
        UsageError: there is none of that name; names the nearest.
    """
    check_choice("target", name, TARGETS)
    target: Target = import_module(f"relational_tensat.rules.targets.{name}").describe()
    return target


def know_kernels() -> None:
    """Make the kernels of all targets known, for readers of e-graphs or rules that may have them."""
    import_module("relational_tensat.rules.targets.fused_chain")
    for name in TARGETS:
        load_target(name)


def all_rule_files() -> list[Path]:
    """Return the files of all rules that ship, those of the targets at the end."""
    know_kernels()
    return [*shipped_files(), *(load_target(name).rule_file for name in TARGETS)]
