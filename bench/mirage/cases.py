"""Mirage's benchmarks: programs with their shapes, and what its paper reports of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.programs import program


@dataclass(frozen=True, slots=True)
class Case:
    """One benchmark.

    Attributes:
        name: as the paper has it, with the phase and the batch.
        program: the name of the program.
        sizes: of its index variables.
        max_operators: of a block; the paper's 7 but where a program needs more.
        published: what the paper reports of its speed, on an A100; empty for nothing.
    """

    name: str
    program: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    max_operators: int = 7
    published: str = ""

    def build(self) -> MuGraph:
        """Return the program at these sizes."""
        return program(self.program, **self.sizes)


#: Heads that share keys, queries of all heads that share them, by phase; 4,096 keys, width 64.
_ATTENTION = {
    "MHA": (32, {"incremental": 1, "speculative": 16, "prefill": 256}, "on par with FlashDecoding"),
    "GQA": (2, {"incremental": 8, "speculative": 256, "prefill": 256}, "up to 3.5x"),
    "MQA": (1, {"incremental": 32, "speculative": 1024, "prefill": 4096}, "up to 1.7x"),
}


def cases() -> Iterator[Case]:
    """Yield the benchmarks: attention in three phases, MLP, MoE, LoRA at two batches, and the others."""
    for batch in (1, 8):
        for name, (heads, phases, published) in _ATTENTION.items():
            for phase, queries in phases.items():
                keys = 1024 if (name, phase) == ("MHA", "prefill") else 4096
                sizes = {"h": heads * batch, "q": queries, "d": 64, "k": keys, "e": 64}
                yield Case(f"{name} {phase} {batch}", "attention", sizes, published=published)
        yield Case(f"MLP {batch}", "mlp", {"m": 16 * batch}, published="3x")
        yield Case(f"MoE {batch}", "moe", {"m": 8 * batch})
        yield Case(f"LoRA {batch}", "lora", {"m": 16 * batch}, published="2.3x")
    yield Case("QKNorm", "qknorm", max_operators=11, published="190 of 190 saved graphs are wrong")
    yield Case("RMSNorm + Linear", "rmsnorm_linear")
    yield Case("gated MLP", "gated_mlp")
    yield Case("gated MLP, down projection", "swiglu", published="none found")
    yield Case("nTrans", "ntrans")


#: The search of GQA by operators in a block, on an A100: with all means, without abstract expressions, and
#: without the canonical form (Table 5).
TABLE_5 = {
    4: ("9 s", "< 1 s", "< 1 s"),
    5: ("2.3 min", "249 min", "> 12 h"),
    6: ("20 min", "> 12 h", "> 12 h"),
    7: ("76 min", "> 12 h", "> 12 h"),
}
