"""A backend: the kernels that a runtime makes of operators, their costs, and the place to time them.

``names.BACKENDS`` has them by name. A file for a backend has the operators that it makes its kernels of
(``expand_to_onnx``). ``docs/extending.md`` has an example.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, TypeAlias

from relational_tensat.base.files import resource_dir
from relational_tensat.base.records import record
from relational_tensat.cost import Configuration
from relational_tensat.cost.profile import Profile
from relational_tensat.rules.backends.fused_kernel import FusedKernel
from relational_tensat.rules.backends.names import BACKENDS
from relational_tensat.rules.library import read_rule_file, shipped_files
from relational_tensat.rules.model import Rule
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
    """Carries out what a backend does in any case."""

    def __call__(self, graph: Graph, *, has_fixed_shapes: bool) -> Graph:
        """Return that graph."""


def _as_it_is(graph: Graph, *, has_fixed_shapes: bool) -> Graph:
    return graph


def _one_kernel(configuration: Configuration, *, tells_computed: bool) -> list[Configuration]:
    return [configuration]


def _none(configuration: Configuration) -> list[Configuration]:
    return []


@record
class CostRequest:
    """The wishes of a run on this machine.

    Attributes:
        measures: kernels are to be measured; else they are modelled.
        threads: of inference, where a number was given.
        is_fused: kernels are the model's own; the backend's are not used.
    """

    measures: bool
    threads: int | None = None
    is_fused: bool = False


#: Returns what ``--cost`` may name, and what the place is called.
CostsHere: TypeAlias = Callable[[CostRequest], tuple[str, str]]


@dataclass(frozen=True, eq=False)
class Backend:
    """A runtime on a kind of device.

    Attributes:
        name: what ``--backend`` and ``--for`` call it; its rules are ``rules/backends/NAME.rules``.

        kernels: (rules) the operators that only it has. They are known from now on, to rules and graphs.
        own_rules: (rules) their file, if it is another one.
        left_out: (rules) shipped rules whose results never pay there, and only let the e-graph grow.

        kernels_of: (kernels) which kernels an application of an operator is there; with
            ``tells_computed``, costs know which operands are computed, else they are as their work is
            priced.
        as_read: (kernels) what it makes of a graph before it makes kernels, where how often a value is
            read decides about that: rules cannot.
        as_fused: (kernels) the kernels that it makes in the end, at any cost: extraction would not choose
            all of them.
        takes_kernels: (kernels) whether what runs graphs is given kernels; else it makes these of operators
            itself.

        costs_here: (price) what a run for this backend costs are from, unless others are named.
        more_work_of: (price) what kernels take beside what a profile says of them, as work of other
            kernels, of which none is launched.
        as_priced: (price) a profile as it holds in the setting that the backend runs graphs in.

        device_kind: (time) the kind of device that its kernels are measured on; where it is given kernels,
            they can be on no other.
        is_everywhere: (time) whether each machine has such a device: where costs are modelled, graphs
            race on it.
        measured_as: (time) what is measured where ``--cost`` names a device: kernels as it runs them.
    """

    name: str
    kernels: Sequence[type[FusedKernel]]
    costs_here: CostsHere
    device_kind: str
    own_rules: Path | None = None
    left_out: frozenset[str] = frozenset()
    kernels_of: KernelsOf = _one_kernel
    as_read: Callable[[Graph], Graph] = lambda graph: graph
    as_fused: AsFused = _as_it_is
    takes_kernels: bool = False
    more_work_of: Callable[[Configuration], list[Configuration]] = _none
    as_priced: Callable[[Profile], Profile] = lambda profile: profile
    is_everywhere: bool = False
    measured_as: Callable[[str], str] = lambda source: source

    def __post_init__(self) -> None:
        known = operators()
        for kernel in self.kernels:
            if kernel.name not in known:
                register(kernel)

    def rules(self, *, has_fixed_shapes: bool, offered: bool = False) -> list[Rule]:
        """Return what it makes of operators.

        Args:
            has_fixed_shapes: whether the file that it reads says how large all dimensions are.
            offered: instead, kernels that it does not make by itself, but runs faster.
        """
        left_out = OPEN_SHAPES if has_fixed_shapes else FIXED_SHAPES
        rules = [rule for rule in read_rule_file(self.rule_file) if left_out not in rule.rulesets]
        return [rule for rule in rules if (OFFERED in rule.rulesets) == offered]

    @property
    def rule_file(self) -> Path:
        """Where its rules are."""
        return self.own_rules or resource_dir("rules") / "backends" / f"{self.name}.rules"


#: The family of the rules that lead to kernels of a model's own.
FUSED = "fused"
#: The name of the file that would have them.
FUSED_FILE = f"{FUSED}.rules"


def load_backend(name: str) -> Backend:
    """Return a backend; its kernels are operators from now on.

    Raises:
        UsageError: there is none of that name; names the nearest.
    """
    backend: Backend = BACKENDS[name]
    return backend


def know_kernels() -> None:
    """Make the kernels of all backends known, for readers of e-graphs or rules that may have them."""
    import_module("relational_tensat.rules.backends.fused_chain")
    for name in BACKENDS:
        load_backend(name)


def all_rule_files() -> list[Path]:
    """Return the files of all rules that ship, those of the backends at the end."""
    know_kernels()
    return [*shipped_files(), *(load_backend(name).rule_file for name in BACKENDS)]
